// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rpma server|client ADDRESS [on-demand] : librpma's operations on the server's memory, and messages; each byte of both
 * sides is compared. Every result is a line "ok: WHAT" or "WRONG: WHAT"; the status says whether one was wrong.
 *
 * librpma registers memory on demand when it cannot be pinned, as that of a file system on persistent memory. With
 * "on-demand" the server's memory is such: its registration is refused here once.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE (1 << 20)
#define PIECE (SIZE / 4) /* of the server's memory: read, written, written with immediate data, and left as it was */
#define WORD (3 * PIECE + 4096) /* but for eight bytes */
#define MESSAGE 5000
#define PORT "7471"
#define IMMEDIATE 0x12345678

enum { SERVERS = 1, WRITTEN, WITH_IMMEDIATE, REQUEST, ANSWER };

/* What the server tells its client of itself */
struct about {
	uint8_t region[24], peer[8], region_size, peer_size;
};

static bool on_demand, was_on_demand;
static int wrong;
static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_cq *cq, *rcq;

/* In front of libibverbs */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	typeof(ibv_reg_mr_iova2) *next = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");

	if (on_demand && length == SIZE && !(access & IBV_ACCESS_ON_DEMAND)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	was_on_demand |= access & IBV_ACCESS_ON_DEMAND;
	return next(pd, addr, length, iova, access);
}

static void check(bool right, const char *what)
{
	printf("%s: %s\n", right ? "ok" : "WRONG", what);
	wrong += !right;
}

/* Without it nothing goes on */
static void must(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(status));
	exit(1);
}

static void *memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p == MAP_FAILED ? RPMA_E_NOMEM : 0, "mmap");
	return p;
}

static void fill(uint8_t *p, int size, uint32_t which)
{
	for (uint32_t x = which * 7919; size--; p++) {
		x = x * 1664525 + 1013904223;
		*p = x >> 24;
	}
}

static bool holds(const uint8_t *p, int size, int which)
{
	static uint8_t want[SIZE];

	fill(want, size, which);
	return !memcmp(p, want, size);
}

/* What the server's memory is after all */
static bool all_as_written(const uint8_t *p)
{
	static uint8_t want[SIZE];

	fill(want, SIZE, SERVERS);
	fill(want + PIECE, PIECE, WRITTEN);
	fill(want + 2 * PIECE, PIECE, WITH_IMMEDIATE);
	memcpy(want + WORD, "together", 8);
	return !memcmp(p, want, SIZE);
}

static struct rpma_mr_local *registered(void *p, size_t size, int usage)
{
	struct rpma_mr_local *mr;

	must(rpma_mr_reg(peer, p, size, usage, &mr), "rpma_mr_reg");
	return mr;
}

/* The next completion, a good one of this kind? */
static bool completed(struct rpma_cq *from, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	int status;

	while ((status = rpma_cq_get_wc(from, 1, wc, NULL)) == RPMA_E_NO_COMPLETION)
		must(rpma_cq_wait(from), "rpma_cq_wait");
	must(status, "rpma_cq_get_wc");
	if (wc->status == IBV_WC_SUCCESS && wc->opcode == opcode)
		return true;
	printf("# status %d, opcode %d in place of %d\n", wc->status, wc->opcode, opcode);
	return false;
}

static bool done(int status, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	must(status, "an operation");
	return completed(cq, opcode, &wc);
}

static struct rpma_conn_cfg *configuration(void)
{
	uint32_t sizes[4] = { 0 };
	struct rpma_conn_cfg *cfg;
	int timeout = 0;

	must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
	must(rpma_conn_cfg_set_timeout(cfg, 20000) || rpma_conn_cfg_set_cq_size(cfg, 20) ||
	     rpma_conn_cfg_set_rcq_size(cfg, 21) || rpma_conn_cfg_set_sq_size(cfg, 22) ||
	     rpma_conn_cfg_set_rq_size(cfg, 23) ? RPMA_E_INVAL : 0, "rpma_conn_cfg_set");
	rpma_conn_cfg_get_timeout(cfg, &timeout);
	rpma_conn_cfg_get_cq_size(cfg, &sizes[0]);
	rpma_conn_cfg_get_rcq_size(cfg, &sizes[1]);
	rpma_conn_cfg_get_sq_size(cfg, &sizes[2]);
	rpma_conn_cfg_get_rq_size(cfg, &sizes[3]);
	check(timeout == 20000 && sizes[0] == 20 && sizes[1] == 21 && sizes[2] == 22 && sizes[3] == 23,
	      "configuration of a connection");
	return cfg;
}

static void connected(struct rpma_conn_req *req, struct rpma_conn_private_data *data)
{
	enum rpma_conn_event event;

	must(rpma_conn_req_connect(&req, data, &conn), "rpma_conn_req_connect");
	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	check(event == RPMA_CONN_ESTABLISHED, "a connection with queues of its own for what is received");
	must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
	must(rpma_conn_get_rcq(conn, &rcq), "rpma_conn_get_rcq");
}

static void server(const char *address, uint8_t *p, uint8_t *message)
{
	struct rpma_mr_local *messages = registered(message, 2 * MESSAGE, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND);
	struct rpma_mr_local *mr;
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *cfg;
	struct rpma_conn_req *req;
	struct about about = { 0 };
	enum rpma_conn_event event;
	struct rpma_ep *ep;
	struct ibv_wc wc;
	size_t size;

	fill(p, SIZE, SERVERS);
	mr = registered(p, SIZE, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	check(was_on_demand == on_demand, on_demand ? "memory on demand" : "memory that is pinned");
	if (on_demand)
		check(!rpma_mr_advise(mr, 0, SIZE, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH),
		      "advice to fetch it");
	must(rpma_mr_get_descriptor_size(mr, &size), "rpma_mr_get_descriptor_size");
	about.region_size = size;
	must(size > sizeof(about.region) ? RPMA_E_INVAL : rpma_mr_get_descriptor(mr, about.region), "a descriptor");
	/* Of what there is no such memory, but the library takes our word for it */
	must(rpma_peer_cfg_new(&cfg), "rpma_peer_cfg_new");
	must(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true), "rpma_peer_cfg_set_direct_write_to_pmem");
	must(rpma_peer_cfg_get_descriptor_size(cfg, &size), "rpma_peer_cfg_get_descriptor_size");
	about.peer_size = size;
	must(size > sizeof(about.peer) ? RPMA_E_INVAL : rpma_peer_cfg_get_descriptor(cfg, about.peer), "a descriptor");

	must(rpma_ep_listen(peer, address, PORT, &ep), "rpma_ep_listen");
	must(rpma_ep_next_conn_req(ep, configuration(), &req), "rpma_ep_next_conn_req");
	must(rpma_conn_req_recv(req, messages, 0, MESSAGE, NULL), "rpma_conn_req_recv");
	must(rpma_conn_req_recv(req, messages, 0, MESSAGE, NULL), "rpma_conn_req_recv");
	data.ptr = &about;
	data.len = sizeof(about);
	connected(req, &data);

	check(completed(rcq, IBV_WC_RECV_RDMA_WITH_IMM, &wc) && wc.wc_flags & IBV_WC_WITH_IMM &&
	      ntohl(wc.imm_data) == IMMEDIATE && holds(p + 2 * PIECE, PIECE, WITH_IMMEDIATE),
	      "a WRITE with immediate data");
	check(completed(rcq, IBV_WC_RECV, &wc) && wc.byte_len == MESSAGE && holds(message, MESSAGE, REQUEST), "a SEND");
	check(all_as_written(p), "all of the server's memory is as it was written");
	fill(message + MESSAGE, MESSAGE, ANSWER);
	check(done(rpma_send_with_imm(conn, messages, MESSAGE, MESSAGE, RPMA_F_COMPLETION_ALWAYS, IMMEDIATE, NULL),
		   IBV_WC_SEND), "a SEND with immediate data leaves");
	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	check(event == RPMA_CONN_CLOSED, "the client has closed the connection");
	must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	must(rpma_conn_delete(&conn), "rpma_conn_delete");
	must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
	must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	must(rpma_mr_dereg(&messages), "rpma_mr_dereg");
}

static void operations(struct rpma_mr_remote *remote, struct rpma_peer_cfg *theirs, uint8_t *p, struct rpma_mr_local *mr)
{
	int always = RPMA_F_COMPLETION_ALWAYS;

	check(done(rpma_read(conn, mr, 0, remote, 0, SIZE, always, NULL), IBV_WC_RDMA_READ) && holds(p, SIZE, SERVERS),
	      "a READ");
	fill(p, PIECE, WRITTEN);
	must(rpma_write(conn, remote, PIECE, mr, 0, PIECE, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
	/* By a READ of its own: it takes FLUSH where a device has both of its types */
	check(done(rpma_flush(conn, remote, PIECE, PIECE, RPMA_FLUSH_TYPE_VISIBILITY, always, NULL), IBV_WC_RDMA_READ),
	      "a WRITE, and a flush that makes it visible, by a READ");
	fill(p, PIECE, WITH_IMMEDIATE);
	check(done(rpma_write_with_imm(conn, remote, 2 * PIECE, mr, 0, PIECE, always, IMMEDIATE, NULL), IBV_WC_RDMA_WRITE),
	      "a WRITE with immediate data leaves");
	check(rpma_flush(conn, remote, 2 * PIECE, PIECE, RPMA_FLUSH_TYPE_PERSISTENT, always, NULL) == RPMA_E_NOSUPP,
	      "the library refuses a flush that makes it persistent");
	must(rpma_conn_apply_remote_peer_cfg(conn, theirs), "rpma_conn_apply_remote_peer_cfg");
	check(done(rpma_flush(conn, remote, 2 * PIECE, PIECE, RPMA_FLUSH_TYPE_PERSISTENT, always, NULL), IBV_WC_RDMA_READ),
	      "but for a server that says it writes to such memory directly: by a READ");
	check(rpma_atomic_write(conn, remote, WORD + 1, "together", always, NULL) == RPMA_E_INVAL,
	      "an ATOMIC WRITE is refused where its address is odd");
	check(done(rpma_atomic_write(conn, remote, WORD, "together", always, NULL), IBV_WC_ATOMIC_WRITE),
	      "an ATOMIC WRITE, as an operation of its own");
	check(done(rpma_read(conn, mr, 0, remote, 0, SIZE, always, NULL), IBV_WC_RDMA_READ) && all_as_written(p),
	      "a READ of all that was written");
}

static void client(const char *address, uint8_t *p, uint8_t *message)
{
	struct rpma_mr_local *messages = registered(message, 2 * MESSAGE, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND);
	struct rpma_mr_local *mr = registered(p, SIZE, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC);
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	struct rpma_peer_cfg *theirs;
	struct rpma_conn_req *req;
	enum rpma_conn_event event;
	struct about about;
	struct ibv_wc wc;
	size_t size = 0;

	must(rpma_conn_req_new(peer, address, PORT, configuration(), &req), "rpma_conn_req_new");
	must(rpma_conn_req_recv(req, messages, 0, MESSAGE, NULL), "rpma_conn_req_recv");
	connected(req, NULL);
	must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
	must(!data.ptr || data.len < sizeof(about) ? RPMA_E_INVAL : 0, "what the server says");
	memcpy(&about, data.ptr, sizeof(about));
	must(rpma_mr_remote_from_descriptor(about.region, about.region_size, &remote), "a region's descriptor");
	must(rpma_peer_cfg_from_descriptor(about.peer, about.peer_size, &theirs), "a peer's descriptor");
	rpma_mr_remote_get_size(remote, &size);
	check(size == SIZE, "the server's region");

	operations(remote, theirs, p, mr);
	fill(message + MESSAGE, MESSAGE, REQUEST);
	check(done(rpma_send(conn, messages, MESSAGE, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL), IBV_WC_SEND),
	      "a SEND leaves");
	check(completed(rcq, IBV_WC_RECV, &wc) && wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == IMMEDIATE &&
	      wc.byte_len == MESSAGE && holds(message, MESSAGE, ANSWER), "a SEND with immediate data");
	must(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	check(event == RPMA_CONN_CLOSED, "the connection is closed");
	must(rpma_conn_delete(&conn), "rpma_conn_delete");
	must(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
	must(rpma_mr_dereg(&mr), "rpma_mr_dereg");
	must(rpma_mr_dereg(&messages), "rpma_mr_dereg");
}

int main(int argc, char **argv)
{
	bool serves = argc > 2 && !strcmp(argv[1], "server");
	struct ibv_context *context;
	int capable = 0;

	if (argc < 3)
		return 2;
	on_demand = serves && argc > 3;
	must(rpma_utils_get_ibv_context(argv[2], serves ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
					&context), "rpma_utils_get_ibv_context");
	must(rpma_utils_ibv_context_is_odp_capable(context, &capable), "rpma_utils_ibv_context_is_odp_capable");
	check(capable, "the device has memory on demand");
	must(rpma_peer_new(context, &peer), "rpma_peer_new");
	(serves ? server : client)(argv[2], memory(SIZE), memory(2 * MESSAGE));
	must(rpma_peer_delete(&peer), "rpma_peer_delete");
	return wrong > 0;
}
