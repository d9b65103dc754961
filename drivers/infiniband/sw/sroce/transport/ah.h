/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Address handles as the requester finds them: by number. Work requests name them so,
 * in the rings of processes and of the kernel alike.
 */
#ifndef SROCE_TRANSPORT_AH_H
#define SROCE_TRANSPORT_AH_H

#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct ib_pd;
struct sroce_path;
struct sroce_port;

/* Address handles of a device */
#define SROCE_MAX_AH SZ_1M

/**
 * struct sroce_ah_entry - an address handle in the table of its device
 * @rcu: freed after a grace period
 * @pd: protection domain
 * @path: where it leads; its first reference belongs to the entry, which has it for as long
 *	as somebody may have found it
 * @ahn: number
 * @turn: its upper bits, which tell this handle from others that had its place in the table
 */
struct sroce_ah_entry {
	struct rcu_head rcu;
	const struct ib_pd *pd;
	struct sroce_path *path;
	u32 ahn;
	u32 turn;
};

/* A new device has none */
void sroce_ah_table_init(struct sroce_port *port);
/* None is left of a device that ends */
void sroce_ah_table_destroy(struct sroce_port *port);

/**
 * sroce_ah_add() - let work requests name a path
 * @port: device
 * @pd: protection domain of the address handle
 * @path: where it leads; its reference passes to the entry, on success
 * @gfp: how to get the memory
 *
 * Context: any, also with interrupts off, as far as @gfp allows.
 * Return: the entry, with its number; or an ERR_PTR: -ENOMEM, or -ENOSPC when there
 * are too many.
 */
struct sroce_ah_entry *sroce_ah_add(struct sroce_port *port,
				    const struct ib_pd *pd,
				    struct sroce_path *path, gfp_t gfp);

/**
 * sroce_ah_replace() - let an address handle lead elsewhere
 * @port: device
 * @old: entry; gone on success
 * @path: where it leads from now on; its reference passes on success
 *
 * Whoever looks its number up finds either the old path or the new one.
 *
 * Context: any, also with interrupts off; calls for one entry are serialised.
 * Return: the new entry, which has the number of the old one; or ERR_PTR(-ENOMEM).
 */
struct sroce_ah_entry *sroce_ah_replace(struct sroce_port *port,
					struct sroce_ah_entry *old,
					struct sroce_path *path);

/**
 * sroce_ah_remove() - end an address handle
 * @port: device
 * @e: entry, which is gone afterwards
 *
 * Its number leads nowhere, and is not given again before 2047 other handles of the device
 * were made.
 *
 * Context: any, also with interrupts off.
 */
void sroce_ah_remove(struct sroce_port *port, struct sroce_ah_entry *e);

/**
 * sroce_ah_path() - where an address handle leads that a work request names
 * @port: device
 * @ahn: number, maybe of none, or of somebody else's
 * @pd: protection domain of the QP
 *
 * It is not held: a process may have many queue pairs send through one address handle.
 *
 * Context: bottom halves off.
 * Return: the path, which is there for as long as these are off, and may be held; NULL when
 * the protection domain has no such address handle.
 */
struct sroce_path *sroce_ah_path(struct sroce_port *port, u32 ahn,
				 const struct ib_pd *pd);

#endif
