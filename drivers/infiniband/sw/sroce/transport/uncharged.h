/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory for what a peer has sent and that cannot be carried out yet: a share for everybody.
 */
#ifndef SROCE_TRANSPORT_UNCHARGED_H
#define SROCE_TRANSPORT_UNCHARGED_H

#include <linux/atomic.h>
#include <linux/types.h>

struct sroce_qp;

/* Users are told apart as far as so many numbers go, and so are devices */
#define SROCE_UNCHARGED_OWNERS 64

/**
 * struct sroce_uncharged - memory of one kind, of all QPs
 * @bytes: of memory
 * @most: that may be so much; tests change it
 * @users: what @bytes has of the QPs of a user's processes, by the user's number
 * @kernel: what it has of the kernel's QPs, by their device's
 */
struct sroce_uncharged {
	atomic_long_t bytes;
	long most;
	atomic_long_t users[SROCE_UNCHARGED_OWNERS];
	atomic_long_t kernel[SROCE_UNCHARGED_OWNERS];
};

/**
 * struct sroce_uncharged_part - what of it a QP has
 * @all: memory of this kind
 * @owner: of all QPs of its owner: a user, or the kernel on its device
 * @device: of all QPs of its device
 * @bytes: of itself. A lock of its owner's protects it.
 */
struct sroce_uncharged_part {
	struct sroce_uncharged *all;
	atomic_long_t *owner;
	atomic_long_t *device;
	long bytes;
};

/**
 * sroce_uncharged_part_init() - a new QP, which has nothing
 * @part: its part
 * @all: kind of memory
 * @device: what all QPs of its device have of that
 * @qp: QP
 *
 * Context: of the process that makes the QP.
 */
void sroce_uncharged_part_init(struct sroce_uncharged_part *part,
			       struct sroce_uncharged *all, atomic_long_t *device,
			       const struct sroce_qp *qp);

/**
 * sroce_uncharged_admits() - may a QP have more?
 * @part: its part
 * @more: bytes
 *
 * Others take and give back at any time, so the bounds are not exact.
 *
 * Context: any.
 * Return: true if neither it nor its owners would have more than their share then.
 */
bool sroce_uncharged_admits(const struct sroce_uncharged_part *part, long more);

/* It has so many bytes more, or less. Context: any, with the lock of @part->bytes held. */
void sroce_uncharged_add(struct sroce_uncharged_part *part, long bytes);

/* Module start: how much it may be follows from the machine's memory */
void sroce_uncharged_start(struct sroce_uncharged *all);

#endif
