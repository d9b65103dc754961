#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Memory on demand: on one device, and between two hosts. Where there can be swap, pages go there under traffic.
. "$(dirname "$0")/lib.sh"

ODP=$(program odp) || bail "odp was not built"

# swap_up : swap space of our own, in memory; without it pages are only dropped
swap_up() {
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 2>/dev/null &&
		mkswap /dev/nullb0 >/dev/null 2>&1 && swapon /dev/nullb0 2>/dev/null
}

swap_up || note "no swap"
devices_up 9000
options=
[ "$SET" = full ] || options=-s
program_verdicts "one device" 300 in_ns $A "$ODP" $options -d $DEV_A -i $IP_A
program_verdicts "two hosts" 300 "$ODP" $options -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
swapoff /dev/nullb0 2>/dev/null
ktap_end
