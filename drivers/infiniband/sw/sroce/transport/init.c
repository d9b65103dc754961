// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the transport has once for all devices: begin and end of the module.
 */
#include <linux/init.h>
#include <linux/rcupdate.h>

#include "memory/odp.h"
#include "transport/gather.h"
#include "transport/held.h"
#include "transport/internal.h"
#include "transport/number.h"
#include "transport/patience.h"
#include "transport/run.h"

int __init sroce_transport_init(void)
{
	int err;

	sroce_runqs_start();
	sroce_patience_start();
	sroce_held_start();
	sroce_numbers_start();
	err = sroce_gathers_start();
	if (err)
		goto err_numbers;
	err = sroce_qps_start();
	if (!err)
		return 0;
	sroce_gathers_stop();
err_numbers:
	sroce_numbers_stop();
	return err;
}

void sroce_transport_exit(void)
{
	/*
	 * A fault that has ended may start a tasklet, but not the reverse: no QP is
	 * left that could want something
	 */
	sroce_pagers_stop();
	sroce_runqs_stop();
	/* QPs and address handles are freed after a grace period, by code of this module */
	rcu_barrier();
	sroce_qps_stop();
	sroce_gathers_stop();
	sroce_numbers_stop();
}
