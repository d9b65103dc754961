// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The bytes of a packet buffer, in place, whatever its layout: linear part,
 * page fragments, and a list of further buffers with the same. For receive.c.
 */
#include "compat.h"
#include "net/net.h"
#include "net/walk.h"

/*
 * Has a member of the list a list of its own, which is legal and never seen? Or is it in
 * device memory, which the CPU cannot read?
 */
static bool sroce_walk_odd(const struct sk_buff *skb)
{
	const struct sk_buff *p;

	skb_walk_frags(skb, p)
		if (skb_has_frag_list(p) || !skb_frags_readable(p))
			return true;
	return false;
}

static void sroce_walk_set(struct sroce_walk *w, struct sk_buff *skb)
{
	w->skb = skb;
	w->frag = -1;
}

int sroce_walk_start(struct sroce_walk *w, struct sk_buff *skb, u32 off)
{
	int err;

	if (!skb_frags_readable(skb))
		return -EFAULT;
	if (sroce_walk_odd(skb)) {
		err = skb_linearize(skb);
		if (err)
			return err;
	}
	w->head = skb;
	w->off = off;
	sroce_walk_set(w, skb);
	return 0;
}

/* The whole part that the position is in */
static void sroce_walk_part(const struct sroce_walk *w, struct bio_vec *bv)
{
	const skb_frag_t *frag;

	if (w->frag < 0) {
		bvec_set_page(bv, virt_to_page(w->skb->data),
			      skb_headlen(w->skb), offset_in_page(w->skb->data));
		return;
	}
	frag = &skb_shinfo(w->skb)->frags[w->frag];
	bvec_set_page(bv, skb_frag_page(frag), skb_frag_size(frag),
		      skb_frag_off(frag));
}

static bool sroce_walk_next_part(struct sroce_walk *w)
{
	struct sk_buff *next;

	if (++w->frag < skb_shinfo(w->skb)->nr_frags)
		return true;
	next = w->skb == w->head ? skb_shinfo(w->head)->frag_list :
				   w->skb->next;
	if (!next)
		return false;
	sroce_walk_set(w, next);
	return true;
}

/* The rest of the part at the position; false at the end of the buffer */
static bool sroce_walk_here(struct sroce_walk *w, struct bio_vec *bv)
{
	sroce_walk_part(w, bv);
	while (w->off >= bv->bv_len) {
		w->off -= bv->bv_len;
		if (!sroce_walk_next_part(w))
			return false;
		sroce_walk_part(w, bv);
	}
	bv->bv_offset += w->off;
	bv->bv_len -= w->off;
	return true;
}

bool sroce_walk_whole(struct sroce_walk *w, struct bio_vec *bv, u32 len)
{
	struct sroce_walk here = *w;

	if (!sroce_walk_here(&here, bv) || bv->bv_len < len)
		return false;
	*w = here;
	bv->bv_len = len;
	return true;
}

int sroce_walk_map(struct sroce_walk *w, struct bio_vec *bv, int max, u32 len)
{
	int n = 0;

	while (len) {
		if (n == max)
			return -EMSGSIZE;
		if (!sroce_walk_here(w, &bv[n]))
			return -EFAULT;
		bv[n].bv_len = min(bv[n].bv_len, len);
		w->off += bv[n].bv_len;
		len -= bv[n].bv_len;
		n++;
	}
	return n;
}
