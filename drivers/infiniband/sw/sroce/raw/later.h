/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Frames that wait for a worker, because they were met where none can be received.
 */
#ifndef SROCE_RAW_LATER_H
#define SROCE_RAW_LATER_H

#include <linux/atomic.h>
#include <linux/skbuff.h>

#include "raw/flow.h"

/* Memory of the frames of one queue, and how many there may be */
#define SROCE_RAW_LATER_BYTES SZ_16M
#define SROCE_RAW_LATER_FRAMES 4096
/* Copies that are to be made of them: no more than of as many plain ones for all flows */
#define SROCE_RAW_LATER_COPIES \
	(SROCE_RAW_LATER_FRAMES * SROCE_FLOW_CLASSES * SROCE_FLOW_COPIES)

/* Which flows a frame is shown to */
enum sroce_raw_way {
	SROCE_RAW_IN,		/* received: all */
	SROCE_RAW_OUT,		/* the host has sent it: sniffers */
	SROCE_RAW_LOOP,		/* a queue pair has: all but those and its own */
};

/**
 * struct sroce_raw_cb - what is said of a buffer that waits, and is in it
 * @owner: of the queue pair that has sent it, if @way says that one has
 * @copies: that are to be made of it, as far as is known when it begins to wait
 * @way: an enum sroce_raw_way
 */
struct sroce_raw_cb {
	const void *owner;
	u32 copies;
	u8 way;
};

/**
 * struct sroce_raw_queue - frames in their order
 * @list: those
 * @bytes: their memory; the lock of @list protects it
 * @copies: that are to be made of them; likewise
 */
struct sroce_raw_queue {
	struct sk_buff_head list;
	u32 bytes;
	u32 copies;
};

/**
 * struct sroce_raw_later - frames that wait for a worker
 * @received: from the wire
 * @looped: from one queue pair to others. They and those from the wire take turns
 * @sent: of this host, for those who look on. None of them is next as long as there is
 *	another one, and they take no place from others
 * @ahead: copies that @received has had and @looped has not had, since both had frames;
 *	the worker's own
 * @waiting: those in @received, and those taken from there and not yet done with
 */
struct sroce_raw_later {
	struct sroce_raw_queue received;
	struct sroce_raw_queue looped;
	struct sroce_raw_queue sent;
	int ahead;
	atomic_t waiting;
};

void sroce_raw_later_init(struct sroce_raw_later *later);

/**
 * sroce_raw_later_put() - have a frame wait
 * @later: with those that wait
 * @skb: buffer of the caller's alone; what it holds but its bytes is let go
 * @cb: what is said of it
 *
 * The more copies are to be made of a frame, the more it leaves free: whoever has others cut
 * up his frames into thousands does not keep those out that are few.
 *
 * Context: any but hard interrupts.
 * Return: false if too much waits already. Then @skb is the caller's still.
 */
bool sroce_raw_later_put(struct sroce_raw_later *later, struct sk_buff *skb,
			 const struct sroce_raw_cb *cb);

/**
 * sroce_raw_later_next() - take a frame
 * @later: with those that wait
 * @cb: what was said of it
 *
 * Context: any but hard interrupts; one at a time.
 * Return: a buffer for sroce_raw_later_done() as soon as it is received, or NULL.
 */
struct sk_buff *sroce_raw_later_next(struct sroce_raw_later *later,
				     struct sroce_raw_cb *cb);
void sroce_raw_later_done(struct sroce_raw_later *later,
			  const struct sroce_raw_cb *cb);

/* Would a frame that is received now overtake another? Context: any. */
bool sroce_raw_later_waits(const struct sroce_raw_later *later);

/* All are lost. Context: any but hard interrupts; nobody puts any more. */
void sroce_raw_later_purge(struct sroce_raw_later *later);

#endif
