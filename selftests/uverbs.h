/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * uverbs: commands to /dev/infiniband/uverbsN and the rings behind it, without any library, for programs that
 * say things which a library would not.
 */
#ifndef UVERBS_H
#define UVERBS_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/sroce-abi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- commands ------------------------------------------------------------- */

/* the core's part of a command and the driver's, each way; together no longer than UV_MAX */
struct uv_command {
	uint32_t number;
	const void *core_in;
	size_t core_in_len;
	const void *in;
	size_t in_len;
	void *core_out;
	size_t core_out_len;
	void *out;
	size_t out_len;
};

#define UV_MAX 1024

/* 0 or an errno. The first field of every command with an answer is the address for it, filled in here. */
int uv_issue(int fd, const struct uv_command *c);

/* --- good ones, to start from ---------------------------------------------- */

struct uv_context {
	int fd, doorbell;
	uint32_t pd;
};

/* the path of the character device of an RDMA device, or false */
bool uv_path(const char *device, char *path, size_t len);

/* 0 or an errno; the file of asynchronous events is closed */
int uv_get_context(int fd, const void *in, size_t in_len, struct sroce_alloc_ucontext_resp *out, size_t out_len);
/* a context and a protection domain; whatever fails ends the program */
struct uv_context uv_open(const char *path);
void uv_close(struct uv_context *c);

int uv_create_cq(int fd, uint32_t cqe, const struct sroce_create_cq_req *in, size_t in_len, uint32_t *handle,
		 struct sroce_create_cq_resp *out, size_t out_len);
/* one with 64 work requests of 4 elements each way */
void uv_qp_command(struct ib_uverbs_create_qp *cmd, uint32_t pd, uint32_t cq, uint8_t type);
int uv_create_qp(int fd, const struct ib_uverbs_create_qp *cmd, const void *in, size_t in_len,
		 struct ib_uverbs_create_qp_resp *resp, struct sroce_create_qp_resp *out, size_t out_len);
int uv_reg_mr(int fd, uint32_t pd, uint64_t start, uint64_t length, uint64_t va, uint32_t access,
	      struct ib_uverbs_reg_mr_resp *resp);

/* --- states of queue pairs --------------------------------------------------- */

/* where a queue pair sends to; GID number @gid_index is the one it sends from */
struct uv_route {
	uint8_t dgid[16];
	uint8_t gid_index;
	uint32_t dest_qpn;
	uint32_t psn;
	uint8_t mtu;
};

/* the attributes that go with the step of a type to a state; @type is an ib_uverbs_qp_type */
uint32_t uv_state_mask(uint8_t type, uint8_t state);
/* a step with usual values for all of them */
void uv_modify_command(struct ib_uverbs_modify_qp *cmd, uint32_t qp, uint8_t type, uint8_t state,
		       const struct uv_route *to);
/* 0 or an errno */
int uv_modify(int fd, uint32_t qp, uint8_t type, uint8_t state, const struct uv_route *to);
/* from any state to RTS by all the steps between; 0 or an errno */
int uv_connect(int fd, uint32_t qp, uint8_t type, const struct uv_route *to);

/* --- rings ------------------------------------------------------------------- */

struct uv_ring {
	void *base; /* of the mapping, which the other ring of a QP is in, too */
	struct sroce_ring_hdr *hdr;
	struct sroce_ring_info info;
};

struct uv_ring uv_map_ring(int fd, const struct sroce_ring_info *info);

/* the mappings that this process has of rings, and device memory; the library does not say where they are */
struct uv_mapping {
	uint8_t *start, *end;
};

#define UV_MAPPINGS 64

size_t uv_mappings(struct uv_mapping m[UV_MAPPINGS]);
/* the one that has come since there were those @n */
struct uv_mapping uv_new_mapping(const struct uv_mapping *before, size_t n);

static inline uint8_t *uv_entry(const struct uv_ring *r, uint32_t i)
{
	return (uint8_t *)r->hdr + SROCE_RING_ENTRIES_OFFSET + (size_t)(i & (r->info.entries - 1)) * r->info.stride;
}

#endif
