#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Memory on demand: on one device, and between two hosts. Where there can be swap, pages go there under traffic.
. "$(dirname "$0")/lib.sh"

# swap_up : swap space of our own, in memory; without it pages are only dropped
swap_up() {
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 2>/dev/null &&
		mkswap /dev/nullb0 >/dev/null 2>&1 && swapon /dev/nullb0 2>/dev/null
}

trap 'swapoff /dev/nullb0 2>/dev/null; finish' EXIT
swap_up || note "no swap"
devices_up 9000
options=
[ "$SET" = full ] || options=-s
two_ways odp 300 $options
# The same with regions of all memory
ktap_prefix="implicit: " REGIONS=implicit
export REGIONS
two_ways odp 300 $options
ktap_end
