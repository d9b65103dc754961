// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What hostile, limits and fuzz_verbs say to the kernel without a library (uverbs.h): commands that are right in every
 * field, of which the caller then changes some, and the mapping of rings.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uverbs.h"
#include "vt.h"

/* --- commands ------------------------------------------------------------- */

int uv_issue(int fd, const struct uv_command *c)
{
	uint8_t req[UV_MAX] = {}, resp[UV_MAX] = {};
	struct ib_uverbs_cmd_hdr hdr = {
		.command = c->number,
		.in_words = (sizeof(hdr) + c->core_in_len + c->in_len) / 4,
		.out_words = (c->core_out_len + c->out_len) / 4,
	};
	uint64_t response = (uintptr_t)resp;
	size_t len = hdr.in_words * 4;

	memcpy(req, &hdr, sizeof(hdr));
	memcpy(req + sizeof(hdr), c->core_in, c->core_in_len);
	if (c->core_out_len)
		memcpy(req + sizeof(hdr), &response, 8);
	if (c->in_len)
		memcpy(req + sizeof(hdr) + c->core_in_len, c->in, c->in_len);
	if (write(fd, req, len) != (ssize_t)len)
		return errno;
	if (c->core_out)
		memcpy(c->core_out, resp, c->core_out_len);
	if (c->out)
		memcpy(c->out, resp + c->core_out_len, c->out_len);
	return 0;
}

/* --- good ones ---------------------------------------------------------------- */

static bool is_device(const char *uverbs, const char *device)
{
	char path[512], name[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev", uverbs);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%63s", name) != 1)
		name[0] = 0;
	fclose(f);
	return !strcmp(name, device);
}

bool uv_path(const char *device, char *path, size_t len)
{
	DIR *dir = opendir("/sys/class/infiniband_verbs");
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		found = is_device(e->d_name, device);
		snprintf(path, len, "/dev/infiniband/%s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

int uv_get_context(int fd, const void *in, size_t in_len, struct sroce_alloc_ucontext_resp *out, size_t out_len)
{
	struct ib_uverbs_get_context cmd = {};
	struct ib_uverbs_get_context_resp resp;
	int rc = uv_issue(fd, &(struct uv_command){
		IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), in, in_len, &resp, sizeof(resp), out, out_len });

	/* nobody reads the events */
	if (!rc)
		close(resp.async_fd);
	return rc;
}

static uint32_t alloc_pd(int fd)
{
	struct ib_uverbs_alloc_pd cmd = {};
	struct ib_uverbs_alloc_pd_resp resp;
	int rc = uv_issue(fd, &(struct uv_command){
		IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), NULL, 0, &resp, sizeof(resp), NULL, 0 });

	if (rc)
		vt_die(VT_WRONG, "WRONG: alloc pd: %s", strerror(rc));
	return resp.pd_handle;
}

struct uv_context uv_open(const char *path)
{
	struct sroce_alloc_ucontext_req req = {};
	struct sroce_alloc_ucontext_resp resp = { .doorbell_fd = -1 };
	struct uv_context c = { .fd = open(path, O_RDWR | O_CLOEXEC) };
	int rc;

	if (c.fd < 0)
		vt_die(VT_SETUP, "%s: %s", path, strerror(errno));
	rc = uv_get_context(c.fd, &req, sizeof(req), &resp, sizeof(resp));
	if (rc)
		vt_die(VT_SETUP, "get context: %s", strerror(rc));
	c.doorbell = resp.doorbell_fd;
	c.pd = alloc_pd(c.fd);
	return c;
}

void uv_close(struct uv_context *c)
{
	close(c->fd);
	if (c->doorbell >= 0)
		close(c->doorbell);
}

int uv_create_cq(int fd, uint32_t cqe, const struct sroce_create_cq_req *in, size_t in_len, uint32_t *handle,
		 struct sroce_create_cq_resp *out, size_t out_len)
{
	struct ib_uverbs_create_cq cmd = { .cqe = cqe, .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp resp;
	int rc = uv_issue(fd, &(struct uv_command){
		IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), in, in_len, &resp, sizeof(resp), out, out_len });

	*handle = resp.cq_handle;
	return rc;
}

void uv_qp_command(struct ib_uverbs_create_qp *cmd, uint32_t pd, uint32_t cq, uint8_t type)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->pd_handle = pd;
	cmd->send_cq_handle = cq;
	cmd->recv_cq_handle = cq;
	cmd->max_send_wr = 64;
	cmd->max_recv_wr = 64;
	cmd->max_send_sge = 4;
	cmd->max_recv_sge = 4;
	cmd->max_inline_data = 64;
	cmd->qp_type = type;
}

int uv_create_qp(int fd, const struct ib_uverbs_create_qp *cmd, const void *in, size_t in_len,
		 struct ib_uverbs_create_qp_resp *resp, struct sroce_create_qp_resp *out, size_t out_len)
{
	return uv_issue(fd, &(struct uv_command){
		IB_USER_VERBS_CMD_CREATE_QP, cmd, sizeof(*cmd), in, in_len, resp, sizeof(*resp), out, out_len });
}

int uv_reg_mr(int fd, uint32_t pd, uint64_t start, uint64_t length, uint64_t va, uint32_t access,
	      struct ib_uverbs_reg_mr_resp *resp)
{
	struct ib_uverbs_reg_mr cmd = {
		.start = start, .length = length, .hca_va = va, .pd_handle = pd, .access_flags = access,
	};

	return uv_issue(fd, &(struct uv_command){
		IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), NULL, 0, resp, sizeof(*resp), NULL, 0 });
}

/* --- states of queue pairs --------------------------------------------------- */

static uint32_t rtr_mask(uint8_t type)
{
	if (type == IB_UVERBS_QPT_UD)
		return IBV_QP_STATE;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       (type == IB_UVERBS_QPT_RC || type == IB_UVERBS_QPT_XRC_TGT ?
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

uint32_t uv_state_mask(uint8_t type, uint8_t state)
{
	if (type == IB_UVERBS_QPT_RAW_PACKET)
		return IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0);
	switch (state) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (type == IB_UVERBS_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		return rtr_mask(type);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | IBV_QP_SQ_PSN | (type == IB_UVERBS_QPT_XRC_TGT ? IBV_QP_TIMEOUT : 0) |
		       (type == IB_UVERBS_QPT_RC || type == IB_UVERBS_QPT_XRC_INI ?
			IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	default:
		return IBV_QP_STATE;
	}
}

void uv_modify_command(struct ib_uverbs_modify_qp *cmd, uint32_t qp, uint8_t type, uint8_t state,
		       const struct uv_route *to)
{
	*cmd = (struct ib_uverbs_modify_qp){
		.qp_handle = qp,
		.attr_mask = uv_state_mask(type, state),
		.qkey = VT_QKEY,
		.rq_psn = to->psn,
		.sq_psn = to->psn,
		.dest_qp_num = to->dest_qpn,
		.qp_access_flags = type == IB_UVERBS_QPT_UD ? 0 : VT_REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE,
		.qp_state = state,
		.path_mtu = to->mtu,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.port_num = 1,
		.timeout = 8,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.dest = { .is_global = 1, .port_num = 1, .sgid_index = to->gid_index, .hop_limit = 64 },
	};
	memcpy(cmd->dest.dgid, to->dgid, 16);
}

int uv_modify(int fd, uint32_t qp, uint8_t type, uint8_t state, const struct uv_route *to)
{
	struct ib_uverbs_modify_qp cmd;

	uv_modify_command(&cmd, qp, type, state, to);
	return uv_issue(fd, &(struct uv_command){
		IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), NULL, 0, NULL, 0, NULL, 0 });
}

int uv_connect(int fd, uint32_t qp, uint8_t type, const struct uv_route *to)
{
	static const uint8_t states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	int rc = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(states) && !rc; i++)
		rc = uv_modify(fd, qp, type, states[i], to);
	return rc;
}

/* --- rings ------------------------------------------------------------------- */

struct uv_ring uv_map_ring(int fd, const struct sroce_ring_info *info)
{
	struct uv_ring r = { .info = *info };

	r.base = mmap(NULL, info->mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, info->mmap_offset);
	if (r.base == MAP_FAILED)
		vt_die(VT_WRONG, "WRONG: mmap of a ring: %s", strerror(errno));
	r.hdr = r.base + info->start;
	return r;
}

size_t uv_mappings(struct uv_mapping m[UV_MAPPINGS])
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];
	size_t n = 0;

	/* they are of the doorbell's file */
	while (f && n < UV_MAPPINGS && fgets(line, sizeof(line), f))
		if (strstr(line, "[sroce-doorbell]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			m[n++] = (struct uv_mapping){ (uint8_t *)start, (uint8_t *)end };
	if (f)
		fclose(f);
	return n;
}

struct uv_mapping uv_new_mapping(const struct uv_mapping *before, size_t n)
{
	struct uv_mapping now[UV_MAPPINGS];
	size_t i, j, count = uv_mappings(now);

	for (i = 0; i < count; i++) {
		for (j = 0; j < n && before[j].start != now[i].start; j++)
			;
		if (j == n)
			return now[i];
	}
	vt_die(VT_SETUP, "no new mapping among %zu", count);
}
