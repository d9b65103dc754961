// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * User contexts: one for each open of the device.
 */
#include <linux/file.h>
#include <linux/fs.h>

#include "verbs/compat.h"
#include "verbs/doorbell.h"
#include "verbs/verbs.h"

#define UVERBS_MODULE_NAME sroce
#include <rdma/uverbs_named_ioctl.h>

#define SROCE_CAPS							\
	(SROCE_CAP_DOORBELL_FD | SROCE_CAP_NULL_LKEY |			\
	 SROCE_CAP_RAW_PACKET | SROCE_CAP_TAG_MATCHING)

int sroce_udata_check_reserved(struct ib_device *ibdev, struct ib_udata *udata,
			       const char *call)
{
	struct sroce_alloc_ucontext_req req;
	int err;

	BUILD_BUG_ON(sizeof(struct sroce_create_wq_req) != sizeof(req));
	BUILD_BUG_ON(sizeof(struct sroce_create_srq_req) != sizeof(req));
	if (!udata)
		return 0;
	err = ib_copy_validate_udata_in(udata, req, reserved);
	if (err)
		return err;
	if (req.reserved) {
		ibdev_dbg(ibdev, "%s: unknown request\n", call);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* The file becomes visible last, when nothing can fail any more */
static int sroce_ucontext_install_doorbell(struct sroce_ucontext *uctx,
					   struct ib_udata *udata)
{
	struct sroce_alloc_ucontext_resp resp = {};
	int fd, err;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	resp.caps = SROCE_CAPS;
	resp.doorbell_fd = fd;
	err = ib_respond_udata(udata, resp);
	if (err) {
		put_unused_fd(fd);
		return err;
	}
	fd_install(fd, get_file(uctx->file));
	return 0;
}

static int sroce_ucontext_make_doorbell(struct sroce_ucontext *uctx,
					struct ib_udata *udata)
{
	int err;

	uctx->file = sroce_doorbell_file(uctx->doorbell);
	if (IS_ERR(uctx->file))
		return PTR_ERR(uctx->file);
	err = sroce_ucontext_install_doorbell(uctx, udata);
	if (err)
		fput(uctx->file);
	return err;
}

int sroce_ib_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct sroce_ucontext *uctx = to_sroce_ucontext(ibuc);
	int err;

	err = sroce_udata_check_reserved(ibuc->device, udata, "alloc_ucontext");
	if (err)
		return err;
	/*
	 * A process that has no room for the answer would never learn the
	 * number of its file and could not close it.
	 */
	if (udata->outlen < offsetofend(struct sroce_alloc_ucontext_resp,
					doorbell_fd))
		return -EINVAL;
	/*
	 * A device that was taken from its processes and has users again goes on in
	 * another network namespace
	 */
	clear_bit(0, &to_sroce_device(ibuc->device)->abandoned);
	sroce_ring_pool_init(&uctx->pool);
	uctx->doorbell = sroce_doorbell_create();
	if (!uctx->doorbell)
		return -ENOMEM;
	err = sroce_ucontext_make_doorbell(uctx, udata);
	if (err)
		sroce_doorbell_close(uctx->doorbell);
	return err;
}

/*
 * Another process takes over the file of the device (ibv_import_device()), and gets a
 * doorbell of its own, which rings for the same queue pairs.
 */
int sroce_ib_query_ucontext(struct ib_ucontext *ibuc,
			    struct uverbs_attr_bundle *attrs)
{
	struct sroce_ucontext *uctx = to_sroce_ucontext(ibuc);
	struct sroce_query_context_resp resp = { .caps = SROCE_CAPS };
	int err;

	resp.doorbell_fd = get_unused_fd_flags(O_CLOEXEC);
	if (resp.doorbell_fd < 0)
		return resp.doorbell_fd;
	err = uverbs_copy_to_struct_or_zero(attrs,
					    SROCE_ATTR_QUERY_CONTEXT_RESP,
					    &resp, sizeof(resp));
	if (err) {
		put_unused_fd(resp.doorbell_fd);
		return err;
	}
	fd_install(resp.doorbell_fd, get_file(uctx->file));
	return 0;
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(sroce_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(SROCE_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct sroce_query_context_resp,
								    reserved),
						 UA_MANDATORY));

const struct uapi_definition sroce_ucontext_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &sroce_query_context),
	{}
};

/* All objects of the context are gone */
void sroce_ib_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct sroce_ucontext *uctx = to_sroce_ucontext(ibuc);

	sroce_ring_pool_drop(&uctx->pool);
	sroce_doorbell_close(uctx->doorbell);
	fput(uctx->file);
}

/*
 * The device goes away under the process. Rings that are mapped are ordinary
 * memory and hold their pages; only the doorbell would reach the kernel.
 */
void sroce_ib_disassociate_ucontext(struct ib_ucontext *ibuc)
{
	sroce_doorbell_shut(to_sroce_ucontext(ibuc)->doorbell);
}
