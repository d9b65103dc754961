#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Queue pairs in the place of RDMA NICs whose packets others have captured: requests and answers of those NICs come to
# them, and what they send is compared with what those NICs have sent, field by field (captured.h, replay.c).
. "$(dirname "$0")/lib.sh"

REPLAY=$(program replay) || bail "replay was not built"
[ "$DRIVER" = sroce ] || { ktap_skip "all of it" "compares with what sroce sends"; ktap_end; }

# addressed NAMESPACE DEVICE ADDRESS... : those that were captured; packets are to be seen one by one
addressed() {
	local ns=$1 dev=$2 address
	shift 2
	in_ns "$ns" ethtool -K veth0 gso off tso off tx off >/dev/null || bail "ethtool cannot switch off GSO"
	# as with those NICs: the sender slows down when it is told, and so queues may mark what it sends
	echo 1 >"/sys/class/infiniband/$dev/ports/1/cc_params/rp_enable" || bail "no rp_enable"
	for address; do ip -n "$ns" addr add "$address" dev veth0; done
	wait_gids "$ns" "$dev" veth0 || bail "no GIDs of the addresses"
}
mac_of() { in_ns "$1" cat /sys/class/net/veth0/address; }

devices_up 1500
addressed $A $DEV_A 192.168.70.6/24 192.170.1.50/24 192.168.250.117/24 10.0.18.1/16
addressed $B $DEV_B 192.168.70.4/24 192.170.1.2/24 192.168.250.114/24 10.0.17.1/16
for peer in 192.168.70.4 192.170.1.2 192.168.250.114 10.0.17.1; do
	on_a ping -qc 1 -W 5 $peer >/dev/null || bail "no way to $peer"
done

program_verdicts "host A" 120 "$REPLAY" -d $DEV_A -h $A -n $B -i veth0 -M "$(mac_of $A)" a
program_verdicts "host B" 120 "$REPLAY" -d $DEV_B -h $B -n $A -i veth0 -M "$(mac_of $B)" b
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
