// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of the kernel that nobody is charged for, because the network decides how much it
 * is: trains that have come too early (held.c), or requests that wait for a receive (patience.c).
 *
 * Of each kind there is a bound for all QPs. Whoever has many of them, and a peer that fills
 * them, must not leave nothing for others: so of what is left all QPs of a user's processes may
 * have a quarter, or half as long as each of them has little, and those of a device half,
 * beyond what is little. What the kernel itself has on a device counts like one user.
 * (Users are told apart by a hash: some share what one may have.)
 */
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/uidgid.h>

#include "memory/owner.h"
#include "transport/qp.h"
#include "transport/uncharged.h"

/* Memory of one kind: this part of the machine's, at least and at most so much */
#define SROCE_UNCHARGED_OF_RAM 64
#define SROCE_UNCHARGED_LEAST SZ_16M
#define SROCE_UNCHARGED_MOST SZ_256M
/* ... and the part of what is left of it that all QPs of one owner may have */
#define SROCE_UNCHARGED_SHARE_OF_OWNER 4
#define SROCE_UNCHARGED_SHARE_OF_DEVICE 2
/*
 * ... but who has less than this, a train as GRO makes them, does not pay for what others of
 * his device have, and only half as much for those of himself
 */
#define SROCE_UNCHARGED_LITTLE SZ_64K
#define SROCE_UNCHARGED_SHARE_OF_LITTLE 2

/* Kernel users do not share with whoever has asked for their connection */
static atomic_long_t *sroce_uncharged_owner(struct sroce_uncharged *all,
					    const struct sroce_qp *qp)
{
	const u32 bits = ilog2(SROCE_UNCHARGED_OWNERS);

	if (!qp->user)
		return &all->kernel[hash_ptr(qp->port, bits)];
	return &all->users[hash_32(__kuid_val(sroce_owner()), bits)];
}

void sroce_uncharged_part_init(struct sroce_uncharged_part *part,
			       struct sroce_uncharged *all, atomic_long_t *device,
			       const struct sroce_qp *qp)
{
	*part = (struct sroce_uncharged_part){
		.all = all,
		.owner = sroce_uncharged_owner(all, qp),
		.device = device,
	};
}

bool sroce_uncharged_admits(const struct sroce_uncharged_part *part, long more)
{
	const struct sroce_uncharged *all = part->all;
	long left = READ_ONCE(all->most) - atomic_long_read(&all->bytes);
	long owner = atomic_long_read(part->owner) + more;
	long device = atomic_long_read(part->device) + more;
	long own = part->bytes + more;

	if (own <= SROCE_UNCHARGED_LITTLE)
		return owner <= left / SROCE_UNCHARGED_SHARE_OF_LITTLE;
	return owner <= left / SROCE_UNCHARGED_SHARE_OF_OWNER &&
	       device <= left / SROCE_UNCHARGED_SHARE_OF_DEVICE;
}

void sroce_uncharged_add(struct sroce_uncharged_part *part, long bytes)
{
	part->bytes += bytes;
	atomic_long_add(bytes, &part->all->bytes);
	atomic_long_add(bytes, part->owner);
	atomic_long_add(bytes, part->device);
}

void __init sroce_uncharged_start(struct sroce_uncharged *all)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;

	all->most = clamp_t(u64, ram / SROCE_UNCHARGED_OF_RAM, SROCE_UNCHARGED_LEAST,
			    SROCE_UNCHARGED_MOST);
}
