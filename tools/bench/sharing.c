// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A plugin of QEMU (interface 1: 7.2 to 8) that counts which lines of memory the kernel touches on more than one emulated
 * processor, between the two instructions of scaling.c's marker():
 *
 *	qemu-system-x86_64 -plugin sharing.so,out=FILE
 *
 * What counts is which processors have touched a line at all, not when: so it does not matter that the emulated processors
 * take turns on few real ones. Each time a marker ends, FILE gets "case", and then for each line that several have touched
 * and one has written, and for each instruction that has:
 *
 *	line instruction LOCKED READS WRITES PROCESSORS
 *
 * where the first two are addresses of the kernel, LOCKED is 1 for an atomic instruction, and the rest are numbers.
 *
 * Debian has no header for this: what is used of the interface is declared here.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*cb)(unsigned int vcpu, void *data),
					    int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data),
				      int flags, int rw, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t n);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

enum { MEM_READ_WRITE = 3, MOST_PROCESSORS = 64, LINE_SHIFT = 6 };
static const uint64_t kernel_half = 1ULL << 63;

/* What one instruction has done to one line, on one processor */
struct access {
	uint64_t line, insn;
	uint32_t reads, writes;
};

/* Of each processor, which alone touches it while counting is on; the number of places is a power of two */
static struct table {
	struct access *place;
	size_t places, used;
} tables[MOST_PROCESSORS];

static bool counting;
static FILE *out;

/* --- tables --- */

static struct access *find(struct table *t, uint64_t line, uint64_t insn)
{
	size_t i = (line * 0x9e3779b97f4a7c15 ^ insn * 0xc2b2ae3d27d4eb4f) >> 20;

	for (;; i++) {
		struct access *a = &t->place[i & (t->places - 1)];

		if (!a->line || (a->line == line && a->insn == insn))
			return a;
	}
}

static void grow(struct table *t)
{
	struct table more = { .places = t->places ? t->places * 2 : 1 << 16, .used = t->used };

	more.place = calloc(more.places, sizeof(*more.place));
	if (!more.place)
		abort();
	for (size_t i = 0; i < t->places; i++)
		if (t->place[i].line)
			*find(&more, t->place[i].line, t->place[i].insn) = t->place[i];
	free(t->place);
	*t = more;
}

/* --- while it runs --- */

/* @data: the address of the instruction, without its highest bit if it is locked */
static void touched(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *data)
{
	struct table *t = &tables[vcpu];
	struct access *a;

	if (!__atomic_load_n(&counting, __ATOMIC_RELAXED) || addr < kernel_half || vcpu >= MOST_PROCESSORS)
		return;
	if (2 * t->used >= t->places)
		grow(t);
	a = find(t, addr >> LINE_SHIFT, (uintptr_t)data);
	if (!a->line) {
		a->line = addr >> LINE_SHIFT;
		a->insn = (uintptr_t)data;
		t->used++;
	}
	if (qemu_plugin_mem_is_store(info))
		a->writes++;
	else
		a->reads++;
}

static void begin(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	for (int i = 0; i < MOST_PROCESSORS; i++) {
		free(tables[i].place);
		tables[i] = (struct table){};
	}
	__atomic_store_n(&counting, true, __ATOMIC_SEQ_CST);
}

/* --- what is told --- */

/* An access and whose it is */
struct whose {
	struct access a;
	int vcpu;
};

static int by_line(const void *x, const void *y)
{
	const struct access *a = &((const struct whose *)x)->a, *b = &((const struct whose *)y)->a;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->insn < b->insn ? -1 : a->insn > b->insn;
}

/* @n accesses of one line: told if it is shared */
static void tell_line(const struct whose *w, size_t n)
{
	uint64_t processors = 0, written = 0;

	for (size_t i = 0; i < n; i++) {
		processors |= 1ULL << w[i].vcpu;
		written += w[i].a.writes;
	}
	if (!written || !(processors & (processors - 1)))
		return;
	for (size_t i = 0, next; i < n; i = next) {
		uint64_t reads = 0, writes = 0, who = 0;

		for (next = i; next < n && w[next].a.insn == w[i].a.insn; next++) {
			reads += w[next].a.reads;
			writes += w[next].a.writes;
			who |= 1ULL << w[next].vcpu;
		}
		/* translate() has marked those that are locked */
		fprintf(out, "%llx %llx %d %llu %llu %d\n", (unsigned long long)w[i].a.line << LINE_SHIFT,
			(unsigned long long)(w[i].a.insn | kernel_half), !(w[i].a.insn & kernel_half),
			(unsigned long long)reads, (unsigned long long)writes, __builtin_popcountll(who));
	}
}

static void end(unsigned int vcpu, void *data)
{
	size_t n = 0, most = 0;
	struct whose *all;

	(void)vcpu;
	(void)data;
	__atomic_store_n(&counting, false, __ATOMIC_SEQ_CST);
	/* for those that are counting something at this moment */
	usleep(100000);
	for (int i = 0; i < MOST_PROCESSORS; i++)
		most += tables[i].used;
	all = malloc((most + 1) * sizeof(*all));
	if (!all)
		abort();
	for (int i = 0; i < MOST_PROCESSORS; i++)
		for (size_t k = 0; k < tables[i].places; k++)
			if (tables[i].place[k].line)
				all[n++] = (struct whose){ .a = tables[i].place[k], .vcpu = i };
	qsort(all, n, sizeof(*all), by_line);
	fprintf(out, "case\n");
	for (size_t i = 0, next; i < n; i = next) {
		for (next = i; next < n && all[next].a.line == all[i].a.line;)
			next++;
		tell_line(&all[i], next - i);
	}
	fflush(out);
	free(all);
}

/* --- which instructions --- */

static bool is_locked(const uint8_t *code, size_t size)
{
	for (size_t i = 0; i < size && i < 4; i++)
		if (code[i] == 0xf0)
			return true;
	/* xchg with memory needs no prefix */
	return size > 1 && (code[0] == 0x87 || (code[0] >> 4 == 4 && code[1] == 0x87));
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const uint8_t marker[] = { 0x0f, 0x1f, 0x80 }, magic[] = { 0xce, 0x0c, 0x5c };

	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);
		size_t size = qemu_plugin_insn_size(insn);
		uint64_t addr = qemu_plugin_insn_vaddr(insn);

		if (addr >= kernel_half) {
			if (is_locked(code, size))
				addr &= ~kernel_half;
			qemu_plugin_register_vcpu_mem_cb(insn, touched, 0, MEM_READ_WRITE, (void *)(uintptr_t)addr);
		} else if (size == 7 && !memcmp(code, marker, 3) && !memcmp(code + 4, magic, 3)) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, code[3] == 1 ? begin : end, 0, NULL);
		}
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	if (!out) {
		fprintf(stderr, "sharing: no file to write to\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
