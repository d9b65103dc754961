/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The objects of which user space keeps little but a number: domains, memory
 * regions and windows, address handles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sroce.h"
#include "sroce-abi.h"

/* Every constructor here ends so when the kernel said no. */
static void *fail(void *object, int err)
{
	free(object);
	errno = err;
	return NULL;
}

/* --- protection, thread and parent domains --- */

static struct sroce_pd *new_pd(void)
{
	struct sroce_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		atomic_init(&pd->refs, 1);
	return pd;
}

static void get_pd(struct sroce_pd *pd)
{
	atomic_fetch_add(&pd->refs, 1);
}

static void put_pd(struct sroce_pd *pd)
{
	if (atomic_fetch_sub(&pd->refs, 1) == 1)
		free(pd);
}

struct ibv_pd *sroce_alloc_pd(struct ibv_context *ctx)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct sroce_pd *pd;
	int err;

	pd = new_pd();
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(ctx, &pd->pd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (err)
		return fail(pd, err);
	return &pd->pd;
}

struct ibv_pd *sroce_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct sroce_pd *pd = new_pd();

	if (!pd)
		return NULL;
	pd->pd.context = ctx;
	pd->pd.handle = handle;
	return &pd->pd;
}

void sroce_unimport_pd(struct ibv_pd *ibpd)
{
	put_pd(to_spd(ibpd));
}

static int dealloc_parent_domain(struct sroce_pd *pd)
{
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	put_pd(pd->contained);
	put_pd(pd);
	return 0;
}

int sroce_dealloc_pd(struct ibv_pd *ibpd)
{
	struct sroce_pd *pd = to_spd(ibpd);
	int err;

	if (atomic_load(&pd->refs) > 1)
		return EBUSY;
	if (pd->contained)
		return dealloc_parent_domain(pd);

	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;

	put_pd(pd);
	return 0;
}

struct ibv_td *sroce_alloc_td(struct ibv_context *ctx,
			      struct ibv_td_init_attr *attr)
{
	struct sroce_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;

	td->td.context = ctx;
	return &td->td;
}

int sroce_dealloc_td(struct ibv_td *ibtd)
{
	struct sroce_td *td = to_std(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;

	free(td);
	return 0;
}

static int set_allocators(struct sroce_pd *pd,
			  const struct ibv_parent_domain_init_attr *attr)
{
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS))
		return 0;
	if (!attr->alloc || !attr->free)
		return EINVAL;

	pd->alloc = attr->alloc;
	pd->free = attr->free;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->alloc_context = attr->pd_context;
	return 0;
}

struct ibv_pd *
sroce_alloc_parent_domain(struct ibv_context *ctx,
			  struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t supported = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				   IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct sroce_pd *pd;
	int err;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask, supported)) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	pd = new_pd();
	if (!pd)
		return NULL;

	err = set_allocators(pd, attr);
	if (err)
		return fail(pd, err);

	ibv_initialize_parent_domain(&pd->pd, attr->pd);
	pd->contained = to_spd(attr->pd);
	get_pd(pd->contained);
	if (attr->td) {
		pd->td = to_std(attr->td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	return &pd->pd;
}

bool sroce_pd_needs_locks(struct ibv_pd *pd)
{
	return !pd || !to_spd(pd)->td;
}

/*
 * The rings themselves come from the kernel, so what the application can place
 * is our own state of each queue, in whole cache lines.
 */
static const size_t object_alignment = 64;

static uint64_t resource_type(enum sroce_resource resource)
{
	return (uint64_t)SROCE_DRIVER_ID << 32 | resource;
}

static void *application_alloc(struct sroce_pd *pd, size_t size,
			       enum sroce_resource resource)
{
	if (!pd || !pd->alloc)
		return IBV_ALLOCATOR_USE_DEFAULT;
	return pd->alloc(&pd->pd, pd->alloc_context, size, object_alignment,
			 resource_type(resource));
}

void *sroce_pd_alloc(struct ibv_pd *ibpd, size_t size,
		     enum sroce_resource resource, struct sroce_origin *origin)
{
	struct sroce_pd *pd = ibpd ? to_spd(ibpd) : NULL;
	void *ptr;

	*origin = (struct sroce_origin){};
	ptr = application_alloc(pd, size, resource);
	if (ptr == IBV_ALLOCATOR_USE_DEFAULT)
		return calloc(1, size);
	if (!ptr) {
		errno = ENOMEM;
		return NULL;
	}

	/* The domain must not go before what was made in it. */
	get_pd(pd);
	origin->pd = pd;
	origin->resource = resource;
	return memset(ptr, 0, size);
}

void sroce_pd_free(void *ptr, const struct sroce_origin *origin)
{
	/* It may be in the memory that goes. */
	struct sroce_pd *pd = origin->pd;

	if (!pd) {
		free(ptr);
		return;
	}
	pd->free(&pd->pd, pd->alloc_context, ptr,
		 resource_type(origin->resource));
	put_pd(pd);
}

/* --- memory regions --- */

struct ibv_mr *sroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err)
		return fail(vmr, err);
	return &vmr->ibv_mr;
}

struct ibv_mr *sroce_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				   size_t length, uint64_t iova, int fd,
				   int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr,
				    NULL);
	if (err)
		return fail(vmr, err);
	return &vmr->ibv_mr;
}

int sroce_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
				access, pd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

/* The key is the same for everybody: nothing is asked of the kernel. */
struct ibv_mr *sroce_alloc_null_mr(struct ibv_pd *ibpd)
{
	struct verbs_mr *vmr;

	if (!(to_sctx(ibpd->context)->caps & SROCE_CAP_NULL_LKEY)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	vmr->mr_type = IBV_MR_TYPE_NULL_MR;
	vmr->ibv_mr.context = ibpd->context;
	vmr->ibv_mr.pd = ibpd;
	vmr->ibv_mr.lkey = SROCE_NULL_LKEY;
	vmr->ibv_mr.length = SIZE_MAX;
	get_pd(to_spd(ibpd));
	return &vmr->ibv_mr;
}

struct ibv_mr *sroce_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_query_mr(pd, vmr, handle);
	if (err)
		return fail(vmr, err);
	return &vmr->ibv_mr;
}

void sroce_unimport_mr(struct ibv_mr *mr)
{
	free(verbs_get_mr(mr));
}

int sroce_dereg_mr(struct verbs_mr *vmr)
{
	int err = 0;

	if (vmr->mr_type == IBV_MR_TYPE_NULL_MR)
		put_pd(to_spd(vmr->ibv_mr.pd));
	else
		err = ibv_cmd_dereg_mr(vmr);
	if (err)
		return err;

	free(vmr);
	return 0;
}

/* --- memory windows --- */

struct ibv_mw *sroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int err;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;

	err = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (err)
		return fail(mw, err);
	return mw;
}

int sroce_dealloc_mw(struct ibv_mw *mw)
{
	int err;

	err = ibv_cmd_dealloc_mw(mw);
	if (err)
		return err;

	free(mw);
	return 0;
}

/* --- address handles --- */

struct ibv_ah *sroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sroce_cmd_create_ah_resp resp = {};
	struct sroce_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	err = ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (err)
		return fail(ah, err);

	ah->ahn = resp.ahn;
	return &ah->ah;
}

int sroce_destroy_ah(struct ibv_ah *ibah)
{
	int err;

	err = ibv_cmd_destroy_ah(ibah);
	if (err)
		return err;

	free(to_sah(ibah));
	return 0;
}

/* --- XRC domains --- */

struct ibv_xrcd *sroce_open_xrcd(struct ibv_context *ctx,
				 struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct verbs_xrcd *xrcd;
	struct ibv_open_xrcd cmd;
	int err;

	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;

	err = ibv_cmd_open_xrcd(ctx, xrcd, sizeof(*xrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (err)
		return fail(xrcd, err);
	return &xrcd->xrcd;
}

int sroce_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int err;

	err = ibv_cmd_close_xrcd(xrcd);
	if (err)
		return err;

	free(xrcd);
	return 0;
}
