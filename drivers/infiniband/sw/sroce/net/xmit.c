// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From trains to packet buffers. Consecutive packets share a buffer as long as
 * they are of one size, and a shorter one ends it; so a run of small messages
 * becomes one buffer, and so does a FIRST with the shorter MIDDLE behind it.
 *
 * send.c comes here by way of struct sroce_xmit_ops; pack.c fills the buffers.
 */
#include <linux/skbuff.h>

#include "counters.h"
#include "net/net.h"
#include "net/pack.h"
#include "net/paths.h"
#include "txq.h"
#include "wire/alike.h"

/*
 * Trains up to this size are put right behind the headers. Where much hangs in the stack's
 * queues, larger ones are, too: there a piece of a large page keeps all of it from others.
 * With headers and what belongs to the buffer it is less than 8 KiB.
 */
#define SROCE_LINEAR_MAX 1024
#define SROCE_LINEAR_MAX_CROWDED (7 * 1024)

/* Bytes of one packet, BTH to ICRC */
static u32 sroce_xmit_packet_size(const struct sroce_train *t, u32 k)
{
	return sroce_train_hdr_len(t, k) +
	       ALIGN(sroce_train_payload(t, k), 4) + SROCE_ICRC_LEN;
}

static void sroce_xmit_flush(struct sroce_tx *tx)
{
	struct sk_buff *skb = tx->open;

	tx->open = NULL;
	if (skb)
		sroce_pack_send(skb);
}

/* Bytes that a train has at most from its packet @k on */
static u32 sroce_xmit_rest(const struct sroce_train *t, u32 k)
{
	return (t->npkts - k) * (SROCE_MAX_HDR_LEN + SROCE_ICRC_LEN + 4) +
	       t->bi.bi_size;
}

/* Room behind the headers: 0 for a long train, just enough for one packet */
static u32 sroce_xmit_linear_room(const struct sroce_train *t, u32 k, u32 size,
				  const struct sroce_txq *txq)
{
	u32 rest = sroce_xmit_rest(t, k);

	if (rest <= SROCE_LINEAR_MAX)
		return t->npkts - k > 1 ? SROCE_LINEAR_MAX : size;
	if (likely(!sroce_txq_is_crowded(txq)))
		return 0;
	return rest <= SROCE_LINEAR_MAX_CROWDED ? max(rest, size) : 0;
}

static bool sroce_xmit_open(struct sroce_tx *tx, const struct sroce_flow *flow,
			    u32 size, u32 linear)
{
	sroce_xmit_flush(tx);
	tx->open = sroce_pack_open(flow, size, linear);
	return tx->open;
}

/* There are no large pages: send a packet in a linear buffer of its own */
static u32 sroce_xmit_alone(struct sroce_tx *tx, const struct sroce_flow *flow,
			    const struct sroce_train *t, u32 k,
			    struct bvec_iter *bi, u32 size)
{
	return sroce_xmit_open(tx, flow, size, size) ?
	       sroce_pack_add(tx->open, t, k, 1, bi, size) : 0;
}

/*
 * Put packets that are alike into the buffer that is open or a new one, as many as one
 * has room for in one piece. Return: their number; 0: no route or no memory.
 */
static u32 sroce_xmit_packets(struct sroce_tx *tx, const struct sroce_flow *flow,
			      const struct sroce_train *t, u32 k,
			      struct bvec_iter *bi)
{
	u32 size = sroce_xmit_packet_size(t, k);
	u32 n;

	if ((!tx->open || !sroce_pack_fits(tx->open, flow, size)) &&
	    !sroce_xmit_open(tx, flow, size,
			     sroce_xmit_linear_room(t, k, size, flow->txq)))
		return 0;
	n = sroce_pack_add(tx->open, t, k, sroce_train_alike(t, k), bi, size) ?:
	    sroce_xmit_alone(tx, flow, t, k, bi, size);
	if (n && sroce_pack_full(tx->open))
		sroce_xmit_flush(tx);
	return n;
}

/* When a packet finds no route or no memory the rest of the train is dropped with it */
static void sroce_xmit_send(struct sroce_tx *tx, struct sroce_path *path,
			    const struct sroce_train *t, struct sroce_txq *txq)
{
	struct sroce_flow flow = sroce_path_flow(path, t, txq);
	struct bvec_iter bi = t->bi;
	u32 k, n;

	for (k = 0; k < t->npkts; k += n) {
		n = sroce_xmit_packets(tx, &flow, t, k, &bi);
		if (!n)
			break;
	}
	if (k < t->npkts)
		sroce_count(txq->counters, SROCE_CNT_TX_DROPS, t->npkts - k);
}

const struct sroce_xmit_ops sroce_net_xmit_ops = {
	.send = sroce_xmit_send,
	.flush = sroce_xmit_flush,
	.path_back = sroce_path_back,
};
