// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * serve_9p ADDRESS FOLDER : a small 9P2000.L server over RDMA (Debian has none), for one client at a time, which
 * sees FOLDER. As little as a test of the kernel's client needs: files are known by their path, everybody is root,
 * and locks are always granted.
 *
 * Every request and every answer is one SEND.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "5640"
#define MSIZE (1 << 20)
#define DEPTH 64
#define FIDS 4096
#define NOFID 0xffffffffu

struct fid {
	char *path;
	int fd;
	DIR *dir;
	uint32_t number;
};

/* A message as it is read or written; past @end nothing is */
struct message {
	uint8_t *at;
	uint8_t *end;
	int bad;
};

static struct fid fids[FIDS];
static const char *root;
static uint32_t msize = MSIZE;

/* --- messages --------------------------------------------------------------------- */

static uint64_t get(struct message *m, int bytes)
{
	uint64_t v = 0;

	if (m->end - m->at < bytes) {
		m->bad = 1;
		return 0;
	}
	memcpy(&v, m->at, bytes);
	m->at += bytes;
	return le64toh(v);
}

static void put(struct message *m, uint64_t v, int bytes)
{
	v = htole64(v);
	if (m->end - m->at < bytes) {
		m->bad = 1;
		return;
	}
	memcpy(m->at, &v, bytes);
	m->at += bytes;
}

/* A name without a slash, or any text with @any */
static char *get_text(struct message *m, int any)
{
	unsigned int len = get(m, 2);
	static char text[8][PATH_MAX];
	static int n;
	char *t = text[n++ % 8];

	t[0] = 0;
	if ((size_t)(m->end - m->at) < len || len >= PATH_MAX) {
		m->bad = 1;
		return t;
	}
	memcpy(t, m->at, len);
	t[len] = 0;
	m->at += len;
	if (!any && (strchr(t, '/') || !*t))
		m->bad = 1;
	return t;
}

static void put_text(struct message *m, const char *text)
{
	size_t len = strlen(text);

	put(m, len, 2);
	if (m->end - m->at < (ssize_t)len) {
		m->bad = 1;
		return;
	}
	memcpy(m->at, text, len);
	m->at += len;
}

/* Numbers of 8 bytes each */
static void put_numbers(struct message *m, const uint64_t *numbers, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		put(m, numbers[i], 8);
}

static void put_time(struct message *m, const struct timespec *t)
{
	put(m, t->tv_sec, 8);
	put(m, t->tv_nsec, 8);
}

static void put_qid(struct message *m, const struct stat *st)
{
	put(m, S_ISDIR(st->st_mode) ? 0x80 : S_ISLNK(st->st_mode) ? 2 : 0, 1);
	put(m, st->st_mtim.tv_nsec ^ st->st_size, 4);
	put(m, st->st_ino, 8);
}

/* --- files ------------------------------------------------------------------------- */

static struct fid *find(uint32_t number)
{
	int i;

	for (i = 0; i < FIDS; i++)
		if (fids[i].path && fids[i].number == number)
			return &fids[i];
	return NULL;
}

static struct fid *get_fid(struct message *m)
{
	struct fid *f = find(get(m, 4));
	static struct fid none = { .fd = -1 };

	if (f)
		return f;
	m->bad = 1;
	return &none;
}

static void forget(struct fid *f)
{
	if (f->dir)
		closedir(f->dir);
	else if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (struct fid){ .fd = -1 };
}

static int remember(uint32_t number, const char *path)
{
	struct fid *f = find(number);
	int i;

	if (f)
		forget(f);
	for (i = 0; i < FIDS; i++) {
		if (fids[i].path)
			continue;
		fids[i] = (struct fid){ strdup(path), -1, NULL, number };
		return 0;
	}
	return -ENFILE;
}

static char *join(const char *dir, const char *name)
{
	static char path[4][2 * PATH_MAX];
	static int n;
	char *p = path[n++ % 4];

	if (!strcmp(name, ".."))
		name = ".";
	if (snprintf(p, sizeof(path[0]), "%s/%s", dir ? dir : "/nonexistent", name) >= (int)sizeof(path[0]))
		*p = 0;
	return p;
}

static int err(int r)
{
	return r < 0 ? -errno : 0;
}

static int answer_qid(struct message *out, const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	put_qid(out, &st);
	return 0;
}

/* --- requests: each reads the rest of @in and writes the rest of the answer --------- */

static int do_version(struct message *in, struct message *out)
{
	uint32_t size = get(in, 4);
	int i;

	for (i = 0; i < FIDS; i++)
		if (fids[i].path)
			forget(&fids[i]);
	msize = size < MSIZE ? size : MSIZE;
	put(out, msize, 4);
	put_text(out, strcmp(get_text(in, 1), "9P2000.L") ? "unknown" : "9P2000.L");
	return 0;
}

static int do_attach(struct message *in, struct message *out)
{
	int r = remember(get(in, 4), root);

	return r ? r : answer_qid(out, root);
}

static int do_walk(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint32_t number = get(in, 4);
	unsigned int i, n = get(in, 2);
	uint8_t *count = out->at;
	char path[2 * PATH_MAX];
	struct stat st;

	if (in->bad)
		return -EBADF;
	snprintf(path, sizeof(path), "%s", f->path);
	put(out, 0, 2);
	for (i = 0; i < n; i++) {
		strcpy(path, join(path, get_text(in, 0)));
		if (lstat(path, &st)) {
			if (!i)
				return -errno;
			break;
		}
		put_qid(out, &st);
	}
	count[0] = i;
	return i == n ? remember(number, path) : 0;
}

static int do_getattr(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	struct stat st;

	if (in->bad)
		return -EBADF;
	if (f->fd >= 0 ? fstat(f->fd, &st) : lstat(f->path, &st))
		return -errno;
	put(out, 0x7ff, 8);
	put_qid(out, &st);
	put(out, st.st_mode, 4);
	put(out, st.st_uid, 4);
	put(out, st.st_gid, 4);
	put_numbers(out, (uint64_t[5]){ st.st_nlink, st.st_rdev, st.st_size, st.st_blksize, st.st_blocks }, 5);
	put_time(out, &st.st_atim);
	put_time(out, &st.st_mtim);
	put_time(out, &st.st_ctim);
	/* time of birth, generation, version: 0x7ff does not promise them */
	put_numbers(out, (uint64_t[4]){ 0 }, 4);
	return 0;
}

/* Bits: mode, uid, gid, size, atime, mtime, ctime; given times have 0x80 and 0x100 */
static int do_setattr(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint32_t valid = get(in, 4), mode = get(in, 4);
	uint32_t uid = get(in, 4), gid = get(in, 4);
	uint64_t size = get(in, 8);
	struct timespec t[2];
	int i;

	for (i = 0; i < 2; i++) {
		t[i].tv_sec = get(in, 8);
		t[i].tv_nsec = get(in, 8);
		if (!(valid & (0x10 << i)))
			t[i].tv_nsec = UTIME_OMIT;
		else if (!(valid & (0x80 << i)))
			t[i].tv_nsec = UTIME_NOW;
	}
	if (in->bad)
		return -EBADF;
	if (valid & 1 && chmod(f->path, mode))
		return -errno;
	if (valid & 6 && lchown(f->path, valid & 2 ? uid : (uint32_t)-1, valid & 4 ? gid : (uint32_t)-1))
		return -errno;
	if (valid & 8 && truncate(f->path, size))
		return -errno;
	if (valid & 0x30 && utimensat(AT_FDCWD, f->path, t, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return 0;
}

static int open_fid(struct fid *f, int flags, int mode, struct message *out)
{
	int r;

	f->fd = open(f->path, (flags & (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY)) | O_NOFOLLOW,
		     mode);
	if (f->fd < 0)
		return -errno;
	if (flags & O_DIRECTORY)
		f->dir = fdopendir(f->fd);
	r = answer_qid(out, f->path);
	put(out, 0, 4);
	return r;
}

/* The flags are those of Linux on x86, but for this one's neighbours */
static int do_lopen(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	int flags = get(in, 4);
	struct stat st;

	if (in->bad || f->fd >= 0)
		return -EBADF;
	if (!lstat(f->path, &st) && S_ISDIR(st.st_mode))
		flags |= O_DIRECTORY;
	return open_fid(f, flags, 0, out);
}

static int do_lcreate(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	char *name = get_text(in, 0);
	int flags = get(in, 4), mode = get(in, 4);
	char *path;

	if (in->bad)
		return -EBADF;
	path = strdup(join(f->path, name));
	free(f->path);
	f->path = path;
	return open_fid(f, flags | O_CREAT, mode, out);
}

static int do_read(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t offset = get(in, 8);
	uint32_t count = get(in, 4);
	ssize_t n;

	if (in->bad || out->end - out->at < 4)
		return -EBADF;
	if (count > (size_t)(out->end - out->at - 4))
		count = out->end - out->at - 4;
	n = pread(f->fd, out->at + 4, count, offset);
	if (n < 0)
		return -errno;
	put(out, n, 4);
	out->at += n;
	return 0;
}

static int do_write(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t offset = get(in, 8);
	uint32_t count = get(in, 4);
	ssize_t n;

	if (in->bad || count > (size_t)(in->end - in->at))
		return -EBADF;
	n = pwrite(f->fd, in->at, count, offset);
	if (n < 0)
		return -errno;
	put(out, n, 4);
	return 0;
}

static int do_readdir(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t offset = get(in, 8);
	uint32_t count = get(in, 4);
	uint8_t *size = out->at;
	struct message data;
	struct dirent *e;
	struct stat st;

	if (in->bad || !f->dir)
		return -EBADF;
	put(out, 0, 4);
	data = (struct message){ out->at, out->end };
	if (count < (size_t)(data.end - data.at))
		data.end = data.at + count;
	seekdir(f->dir, offset);
	while ((e = readdir(f->dir))) {
		if (data.end - data.at < (ssize_t)(24 + strlen(e->d_name)))
			break;
		memset(&st, 0, sizeof(st));
		fstatat(f->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW);
		put_qid(&data, &st);
		put(&data, e->d_off, 8);
		put(&data, e->d_type, 1);
		put_text(&data, e->d_name);
	}
	out->at = size;
	put(out, data.at - size - 4, 4);
	out->at = data.at;
	return 0;
}

static int do_statfs(struct message *in, struct message *out)
{
	struct statfs s;

	get_fid(in);
	if (in->bad || statfs(root, &s))
		return -EBADF;
	put(out, s.f_type, 4);
	put(out, s.f_bsize, 4);
	put_numbers(out, (uint64_t[6]){ s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree, 0 }, 6);
	put(out, s.f_namelen, 4);
	return 0;
}

static int do_clunk(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);

	if (in->bad)
		return -EBADF;
	forget(f);
	return 0;
}

static int do_fsync(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);

	return in->bad ? -EBADF : err(fsync(f->fd));
}

static int do_mkdir(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	char *path = join(f->path, get_text(in, 0));

	if (in->bad)
		return -EBADF;
	return mkdir(path, get(in, 4)) ? -errno : answer_qid(out, path);
}

static int do_symlink(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	char *path = join(f->path, get_text(in, 0));
	char *target = get_text(in, 1);

	if (in->bad)
		return -EBADF;
	return symlink(target, path) ? -errno : answer_qid(out, path);
}

static int do_readlink(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	char target[PATH_MAX] = "";

	if (in->bad)
		return -EBADF;
	if (readlink(f->path, target, sizeof(target) - 1) < 0)
		return -errno;
	put_text(out, target);
	return 0;
}

static int do_link(struct message *in, struct message *out)
{
	struct fid *dir = get_fid(in), *f = get_fid(in);
	char *path = join(dir->path, get_text(in, 0));

	return in->bad ? -EBADF : err(link(f->path, path));
}

static int do_unlinkat(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	char *path = join(f->path, get_text(in, 0));

	if (in->bad)
		return -EBADF;
	return err(get(in, 4) & 0x200 ? rmdir(path) : unlink(path));
}

static int do_renameat(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	char *from = join(f->path, get_text(in, 0));
	struct fid *dir = get_fid(in);
	char *to = join(dir->path, get_text(in, 0));
	size_t len = strlen(from);
	char *path;
	int i;

	if (in->bad)
		return -EBADF;
	if (rename(from, to))
		return -errno;
	/* What is below goes with it */
	for (i = 0; i < FIDS; i++) {
		if (!fids[i].path || strncmp(fids[i].path, from, len) ||
		    (fids[i].path[len] && fids[i].path[len] != '/'))
			continue;
		if (asprintf(&path, "%s%s", to, fids[i].path + len) < 0)
			return -ENOMEM;
		free(fids[i].path);
		fids[i].path = path;
	}
	return 0;
}

static int do_lock(struct message *in, struct message *out)
{
	put(out, 0, 1);
	return 0;
}

static int do_flush(struct message *in, struct message *out)
{
	return 0;
}

static int (*const requests[256])(struct message *in, struct message *out) = {
	[8] = do_statfs, [12] = do_lopen, [14] = do_lcreate, [16] = do_symlink, [22] = do_readlink,
	[24] = do_getattr, [26] = do_setattr, [40] = do_readdir, [50] = do_fsync, [52] = do_lock,
	[70] = do_link, [72] = do_mkdir, [74] = do_renameat, [76] = do_unlinkat, [100] = do_version,
	[104] = do_attach, [108] = do_flush, [110] = do_walk, [116] = do_read, [118] = do_write,
	[120] = do_clunk,
};

/* Returns the length of the answer */
static uint32_t serve(uint8_t *request, uint32_t len, uint8_t *answer)
{
	struct message in = { request, request + len };
	struct message out = { answer + 7, answer + msize };
	struct message head = { answer, answer + 7 };
	uint32_t size = get(&in, 4);
	uint8_t type = get(&in, 1);
	uint16_t tag = get(&in, 2);
	int r = -EOPNOTSUPP;

	if (size != len)
		r = -EBADMSG;
	else if (requests[type])
		r = requests[type](&in, &out);
	if (!r && (in.bad || out.bad))
		r = -EBADMSG;
	if (r) {
		type = 6;
		out.at = answer + 7;
		put(&out, -r, 4);
	}
	put(&head, out.at - answer, 4);
	put(&head, type + 1, 1);
	put(&head, tag, 2);
	return out.at - answer;
}

/* --- RDMA ---------------------------------------------------------------------------- */

static void must(int bad, const char *what)
{
	if (!bad)
		return;
	perror(what);
	exit(1);
}

/* The next request, or 0 when the client has gone: that comes as an event, not as a completion */
static int next_request(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	struct pollfd fds[] = {
		{ .fd = id->recv_cq_channel->fd, .events = POLLIN },
		{ .fd = id->channel->fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int n;

	for (;;) {
		n = ibv_poll_cq(id->recv_cq, 1, wc);
		if (!n) {
			must(ibv_req_notify_cq(id->recv_cq, 0), "ibv_req_notify_cq");
			n = ibv_poll_cq(id->recv_cq, 1, wc);
		}
		if (n)
			return n == 1 && wc->status == IBV_WC_SUCCESS;
		if (poll(fds, 2, -1) < 0 || fds[1].revents)
			return 0;
		must(ibv_get_cq_event(id->recv_cq_channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

static void serve_client(struct rdma_cm_id *id)
{
	uint8_t *buffers = aligned_alloc(4096, (size_t)(DEPTH + 1) * MSIZE);
	uint8_t *answer = buffers + (size_t)DEPTH * MSIZE;
	struct ibv_mr *mr = rdma_reg_msgs(id, buffers, (size_t)(DEPTH + 1) * MSIZE);
	struct ibv_wc wc;
	uint32_t len;
	uintptr_t i;

	must(!mr, "rdma_reg_msgs");
	for (i = 0; i < DEPTH; i++)
		must(rdma_post_recv(id, (void *)i, buffers + i * MSIZE, MSIZE, mr), "rdma_post_recv");
	must(rdma_accept(id, NULL), "rdma_accept");
	while (next_request(id, &wc)) {
		i = wc.wr_id;
		len = serve(buffers + i * MSIZE, wc.byte_len, answer);
		must(rdma_post_recv(id, (void *)i, buffers + i * MSIZE, MSIZE, mr), "rdma_post_recv");
		if (rdma_post_send(id, NULL, answer, len, mr, IBV_SEND_SIGNALED) ||
		    rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
			break;
	}
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	free(buffers);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *listener, *id;
	struct rdma_addrinfo *address;

	if (argc != 3) {
		fprintf(stderr, "usage: serve_9p ADDRESS FOLDER\n");
		return 2;
	}
	root = argv[2];
	must(rdma_getaddrinfo(argv[1], PORT, &hints, &address), "rdma_getaddrinfo");
	must(rdma_create_ep(&listener, address, NULL, &attr), "rdma_create_ep");
	must(rdma_listen(listener, 1), "rdma_listen");
	for (;;) {
		must(rdma_get_request(listener, &id), "rdma_get_request");
		serve_client(id);
	}
}
