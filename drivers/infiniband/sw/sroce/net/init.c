// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Module parameters, start and end of the network layer.
 */
#include <linux/module.h>

#include "net/attach.h"
#include "net/backlog.h"
#include "net/group.h"
#include "net/gsi.h"
#include "net/init.h"
#include "net/net.h"
#include "net/pack.h"

bool sroce_direct __read_mostly = true;
module_param_named(direct, sroce_direct, bool, 0644);
MODULE_PARM_DESC(direct,
		 "Hand trains for an address of this network namespace to the peer QP without a packet, past firewall and capture; read when a path is made (default: Y)");

bool sroce_gso __read_mostly = true;
module_param_named(gso, sroce_gso, bool, 0644);
MODULE_PARM_DESC(gso,
		 "Send several packets in one UDP GSO buffer; turn off for a NIC that does not count the IPv4 identification up when it segments (default: Y)");

int sroce_net_init(void)
{
	int err;

	sroce_gsi_init();
	err = sroce_attachments_init();
	if (err)
		return err;
	err = sroce_joins_init();
	if (err)
		goto err_ports;
	err = sroce_backlog_init();
	if (err)
		goto err_group;
	return 0;

err_group:
	sroce_joins_exit();
err_ports:
	sroce_attachments_exit();
	return err;
}

/* All QPs are dead, so that nothing is sent from here on */
void sroce_net_exit(void)
{
	sroce_gsi_exit();
	sroce_backlog_exit();
	sroce_joins_exit();
	sroce_attachments_exit();
	sroce_pack_exit();
}
