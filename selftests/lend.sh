#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Two processes that have one file of a device: on one device, between two hosts, and when the device goes.
. "$(dirname "$0")/lib.sh"

LEND=$(program lend) || bail "lend was not built"

devices_up 9000
two_ways lend
for owner in alive dead; do
	export OWNER=$owner
	program_verdicts "$owner owner" 60 "$LEND" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B ip netns exec $B rdma link del $DEV_B
	link_add_soon $B $DEV_B
done
[ "$(rdma resource show mr | grep -c srt_)" -eq 0 ]
result $? "no region is left"
ktap_end
