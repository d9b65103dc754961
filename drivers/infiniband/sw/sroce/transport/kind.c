// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Types of QPs, a row for each. What the types have in common looks here for
 * what sets them apart.
 */
#include <linux/nospec.h>

#include "transport/kind.h"

#define POST(x) BIT_ULL(SROCE_WR_##x)

#define POST_UD (POST(SEND) | POST(SEND_IMM))
#define POST_UC (POST_UD | POST(RDMA_WRITE) | POST(RDMA_WRITE_IMM) | \
		 POST(LOCAL_INV) | POST(BIND_MW))
#define POST_RC (POST_UC | POST(SEND_INV) | POST(RDMA_READ) | \
		 POST(CMP_SWAP) | POST(FETCH_ADD) | POST(FLUSH) | \
		 POST(ATOMIC_WRITE))

static const struct sroce_qp_kind sroce_kinds[] = {
	[IB_QPT_GSI] = {
		.service = SROCE_UD,
		.receives = true,
		.posts = POST_UD,
	},
	[IB_QPT_RC] = {
		.service = SROCE_RC,
		.acked = true,
		.receives = true,
		.train_flags = SROCE_ACKREQ,
		.posts = POST_RC,
		.kernel_posts = POST(REG_MR),
	},
	[IB_QPT_UC] = {
		.service = SROCE_UC,
		.receives = true,
		.posts = POST_UC,
		.kernel_posts = POST(REG_MR),
	},
	[IB_QPT_UD] = {
		.service = SROCE_UD,
		.receives = true,
		.posts = POST_UD,
	},
	[IB_QPT_RAW_PACKET] = {
		.service = SROCE_NO_SERVICE,
		.receives = true,
		.raw = true,
		.posts = POST(SEND) | POST(TSO),
	},
	[IB_QPT_XRC_INI] = {
		.service = SROCE_XRC,
		.acked = true,
		.train_flags = SROCE_ACKREQ,
		.posts = POST_RC,
		.kernel_posts = POST(REG_MR),
	},
	[IB_QPT_XRC_TGT] = {
		.service = SROCE_XRC,
		.acked = true,
	},
};

/* One of IB_QPT_RC whose shared receive queue matches tags */
static const struct sroce_qp_kind sroce_kind_tags = {
	.service = SROCE_RC,
	.acked = true,
	.receives = true,
	.tags = true,
	.train_flags = SROCE_ACKREQ,
	.posts = POST_RC | POST(TAG_READ) | POST(TAG_FIN),
};

/* A receive queue of raw packets, as it stands in the tables of others */
static const struct sroce_qp_kind sroce_kind_wq = {
	.service = SROCE_NO_SERVICE,
	.receives = true,
	.raw = true,
};

/* A QP of raw packets that has a table of such */
static const struct sroce_qp_kind sroce_kind_rss = {
	.service = SROCE_NO_SERVICE,
	.raw = true,
};

const struct sroce_qp_kind *sroce_qp_kind(const struct ib_qp_init_attr *init)
{
	if (init->qp_type == IB_QPT_RAW_PACKET && init->rwq_ind_tbl)
		return &sroce_kind_rss;
	if (init->qp_type == IB_QPT_RAW_PACKET && !init->send_cq)
		return &sroce_kind_wq;
	if (init->srq && init->srq->srq_type == IB_SRQT_TM)
		return &sroce_kind_tags;
	return &sroce_kinds[array_index_nospec(init->qp_type,
					       ARRAY_SIZE(sroce_kinds))];
}
