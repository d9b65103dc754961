// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of the kernel that nobody is charged for, because the network decides how much it
 * is: requests that have come too early (hold.c), or that wait for a receive (patience.c).
 *
 * Of each kind there is a bound for all QPs. Whoever has many of them, and a peer that fills
 * them, must not leave nothing for others: so of what is left all QPs of a process may have a
 * quarter, or half as long as each of them has little, and those of a device half, beyond
 * what is little. (Processes are told apart by a hash: a few share what one may have.)
 */
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>

#include "transport/qp.h"
#include "transport/uncharged.h"

/* Memory of one kind: this part of the machine's, at least and at most so much */
#define SROCE_UNCHARGED_OF_RAM 64
#define SROCE_UNCHARGED_LEAST SZ_16M
#define SROCE_UNCHARGED_MOST SZ_256M
/* ... and the part of what is left of it that all QPs of one owner may have */
#define SROCE_UNCHARGED_SHARE_OF_PROCESS 4
#define SROCE_UNCHARGED_SHARE_OF_DEVICE 2
/*
 * ... but who has less than this, a train as GRO makes them, does not pay for what others of
 * his device have, and only half as much for those of his process
 */
#define SROCE_UNCHARGED_LITTLE SZ_64K
#define SROCE_UNCHARGED_SHARE_OF_LITTLE 2

void sroce_uncharged_part_init(struct sroce_uncharged_part *part,
			       struct sroce_uncharged *all, atomic_long_t *device,
			       const struct sroce_qp *qp)
{
	/* Kernel users do not share with whoever has asked for their connection */
	const void *process = qp->user ? (const void *)current->mm : qp->port;
	u32 number = hash_ptr(process, ilog2(SROCE_UNCHARGED_PROCESSES));

	*part = (struct sroce_uncharged_part){
		.all = all,
		.process = &all->processes[number],
		.device = device,
	};
}

bool sroce_uncharged_admits(const struct sroce_uncharged_part *part, long more)
{
	const struct sroce_uncharged *all = part->all;
	long left = READ_ONCE(all->most) - atomic_long_read(&all->bytes);
	long process = atomic_long_read(part->process) + more;
	long device = atomic_long_read(part->device) + more;
	long own = part->bytes + more;

	if (own <= SROCE_UNCHARGED_LITTLE)
		return process <= left / SROCE_UNCHARGED_SHARE_OF_LITTLE;
	return process <= left / SROCE_UNCHARGED_SHARE_OF_PROCESS &&
	       device <= left / SROCE_UNCHARGED_SHARE_OF_DEVICE;
}

void sroce_uncharged_add(struct sroce_uncharged_part *part, long bytes)
{
	part->bytes += bytes;
	atomic_long_add(bytes, &part->all->bytes);
	atomic_long_add(bytes, part->process);
	atomic_long_add(bytes, part->device);
}

void __init sroce_uncharged_start(struct sroce_uncharged *all)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;

	all->most = clamp_t(u64, ram / SROCE_UNCHARGED_OF_RAM, SROCE_UNCHARGED_LEAST,
			    SROCE_UNCHARGED_MOST);
}
