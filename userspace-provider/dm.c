/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device memory. The kernel's driver keeps it in pages of its own, which are mapped
 * here for the application's copies to and from it, and for nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_write.h>

#include "sroce.h"
#include "sroce-abi.h"

struct sroce_dm {
	struct verbs_dm vdm;
	void *addr;
	size_t map_len;
	size_t length;		/* as the application has asked for */
};

static struct sroce_dm *to_sdm(struct ibv_dm *ibdm)
{
	return container_of(ibdm, struct sroce_dm, vdm.dm);
}

/* The kernel has it, under the handle that is set: map it */
static int map_dm(struct ibv_context *ctx, struct sroce_dm *dm)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, SROCE_METHOD_DM_QUERY,
			       2);
	struct sroce_query_dm_resp resp = {};

	fill_attr_in_obj(cmdb, SROCE_ATTR_QUERY_DM_HANDLE, dm->vdm.handle);
	fill_attr_out_ptr(cmdb, SROCE_ATTR_QUERY_DM_RESP, &resp);
	if (execute_ioctl(ctx, cmdb))
		return errno;
	dm->length = resp.length;
	dm->map_len = resp.mmap_len;
	dm->addr = mmap(NULL, dm->map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
			ctx->cmd_fd, resp.mmap_offset);
	return dm->addr == MAP_FAILED ? errno : 0;
}

static int create_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr,
		     struct sroce_dm *dm)
{
	int err;

	err = ibv_cmd_alloc_dm(ctx, attr, &dm->vdm, NULL);
	if (err)
		return err;
	err = map_dm(ctx, dm);
	if (err)
		ibv_cmd_free_dm(&dm->vdm);
	return err;
}

static int find_dm(struct ibv_context *ctx, uint32_t handle,
		   struct sroce_dm *dm)
{
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = ctx;
	return map_dm(ctx, dm);
}

/*
 * Of whole words, as on NICs: an application that gets by here with anything else would
 * not get by there.
 */
static bool may_copy(const struct sroce_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset &&
	       !((offset | length) & 3);
}

static int copy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *host,
		      size_t length)
{
	struct sroce_dm *dm = to_sdm(ibdm);

	if (!may_copy(dm, offset, length))
		return EINVAL;
	memcpy((char *)dm->addr + offset, host, length);
	return 0;
}

static int copy_from_dm(void *host, struct ibv_dm *ibdm, uint64_t offset,
			size_t length)
{
	struct sroce_dm *dm = to_sdm(ibdm);

	if (!may_copy(dm, offset, length))
		return EINVAL;
	memcpy(host, (const char *)dm->addr + offset, length);
	return 0;
}

/* @dm is new and, if that has failed with @err, gone */
static struct ibv_dm *finish(struct sroce_dm *dm, int err)
{
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	dm->vdm.dm.memcpy_to_dm = copy_to_dm;
	dm->vdm.dm.memcpy_from_dm = copy_from_dm;
	return &dm->vdm.dm;
}

struct ibv_dm *sroce_alloc_dm(struct ibv_context *ctx,
			      struct ibv_alloc_dm_attr *attr)
{
	struct sroce_dm *dm;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	return dm ? finish(dm, create_dm(ctx, attr, dm)) : NULL;
}

struct ibv_dm *sroce_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct sroce_dm *dm = calloc(1, sizeof(*dm));

	return dm ? finish(dm, find_dm(ctx, handle, dm)) : NULL;
}

void sroce_unimport_dm(struct ibv_dm *ibdm)
{
	struct sroce_dm *dm = to_sdm(ibdm);

	munmap(dm->addr, dm->map_len);
	free(dm);
}

int sroce_free_dm(struct ibv_dm *ibdm)
{
	struct sroce_dm *dm = to_sdm(ibdm);
	int err;

	err = ibv_cmd_free_dm(&dm->vdm);
	if (err)
		return err;
	sroce_unimport_dm(ibdm);
	return 0;
}

struct ibv_mr *sroce_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			       uint64_t offset, size_t length,
			       unsigned int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dm_mr(ibpd, &to_sdm(ibdm)->vdm, offset, length,
				access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}
