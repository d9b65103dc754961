// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tag matching: the call by which a process changes the list of tagged buffers of a shared
 * receive queue (ibv_post_srq_ops()). The list is in transport/tags.c.
 *
 * ib_core knows the type of queue, but no operation for this. So it is a method of the
 * driver's. It is complete when it returns, and its completions are in the queue: there is
 * no ring that a process could change meanwhile, nor one that has to be looked at for each
 * message.
 */
#include <rdma/uverbs_types.h>

#include "verbs/verbs.h"

#define UVERBS_MODULE_NAME sroce
#include <rdma/uverbs_named_ioctl.h>

static void sroce_tags_carry_out(struct sroce_srq *srq, const struct sroce_tag_op *ops,
				 u32 n, struct sroce_tag_ops_resp *resp)
{
	struct ib_device *ibdev = srq->ibsrq.device;
	const struct sroce_tag_op *op;

	for (; resp->done < n && !resp->err; resp->done += !resp->err) {
		op = &ops[resp->done];
		resp->err = sroce_srq_tag_op(srq, op, &resp->handles[resp->done]);
		if (resp->err == -EINVAL)
			ibdev_dbg(ibdev, "post_srq_ops: %u with flags %#x, %u elements\n",
				  op->opcode, op->flags, op->num_sge);
	}
}

static int UVERBS_HANDLER(SROCE_METHOD_SRQ_TAGS)(struct uverbs_attr_bundle *attrs)
{
	struct ib_srq *ibsrq = uverbs_attr_get_obj(attrs,
						   SROCE_ATTR_SRQ_TAGS_HANDLE);
	const struct sroce_tag_op *ops =
		uverbs_attr_get_alloced_ptr(attrs, SROCE_ATTR_SRQ_TAGS_OPS);
	int n = uverbs_attr_ptr_get_array_size(attrs, SROCE_ATTR_SRQ_TAGS_OPS,
					       sizeof(*ops));
	struct sroce_tag_ops_resp resp = {};

	if (n < 0)
		return n;
	if (ibsrq->srq_type != IB_SRQT_TM || n > SROCE_TAG_OPS) {
		ibdev_dbg(ibsrq->device, "post_srq_ops: %d on an SRQ of type %d\n",
			  n, ibsrq->srq_type);
		return -EINVAL;
	}
	sroce_tags_carry_out(to_sroce_srq(ibsrq), ops, n, &resp);
	return uverbs_copy_to(attrs, SROCE_ATTR_SRQ_TAGS_RESP, &resp, sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(SROCE_METHOD_SRQ_TAGS,
			    UVERBS_ATTR_IDR(SROCE_ATTR_SRQ_TAGS_HANDLE,
					    UVERBS_OBJECT_SRQ, UVERBS_ACCESS_READ,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(SROCE_ATTR_SRQ_TAGS_OPS,
					       UVERBS_ATTR_MIN_SIZE(sizeof(struct sroce_tag_op)),
					       UA_MANDATORY, UA_ALLOC_AND_COPY),
			    UVERBS_ATTR_PTR_OUT(SROCE_ATTR_SRQ_TAGS_RESP,
						UVERBS_ATTR_TYPE(struct sroce_tag_ops_resp),
						UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_SRQ,
			      &UVERBS_METHOD(SROCE_METHOD_SRQ_TAGS));

const struct uapi_definition sroce_tags_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_SRQ),
	{}
};
