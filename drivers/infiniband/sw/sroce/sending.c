// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who hands a packet to the network stack marks that in a variable of the CPU, so that who
 * receives knows whether it is called from there (sending.h).
 */
#include <linux/netdevice.h>
#include <linux/skbuff.h>

#include "sending.h"
#include "turn.h"

DEFINE_PER_CPU(struct sroce_sending, sroce_sendings) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

void sroce_sending_spend(const struct sk_buff *skb,
			 const struct net_device *dev, u32 packets)
{
	/* That somebody has to look at the headers does not cut it up */
	int type = skb_shinfo(skb)->gso_type & ~SKB_GSO_DODGY;

	if (!skb_is_gso(skb) || net_gso_ok(dev->features, type))
		packets = 1;
	sroce_turn_spend(packets * SROCE_TURN_TRAIN);
}
