#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Connection managers' messages that nobody should send, about connections that there are: with right and wrong ids,
# repeated, changed and cut short, in every state, from their peer's address and from another one, single and in trains.
# Connections that were not ended by one who knows all about them survive, and new ones come about.
#
# MESSAGES=N (3000; 1000000 in a full run)  SEED=N
. "$(dirname "$0")/lib.sh"

BADCM=$(program badcm) || bail "badcm was not built"
amount MESSAGES 3000 1000000
seeded MESSAGES

mac_of() { in_ns "$1" cat /sys/class/net/veth0/address; }

devices_up 9000
# a second address of host B, which has no connection
ip -n $B addr add 10.98.0.3/24 dev veth0
on_a ping -qc 1 -W 5 10.98.0.3 >/dev/null
wait_gids $B $DEV_B veth0 || bail "no GID of the second address"

: >"$TMP/target"
ip netns exec $A "$BADCM" -l -s $IP_A >"$TMP/target" 2>&1 &
target=$!
wait_for 10 grep -q ready "$TMP/target" || bail "nobody listens: $(tail -n 1 "$TMP/target")"
# packets in buffers with others
together() { echo $(($(counter $A $DEV_A rdma_rx_packets) - $(counter $A $DEV_A rx_trains))); }
before=$(together)
program_verdicts "CM" $((240 + MESSAGES / 500)) ip netns exec $B "$BADCM" -i veth0 -s $IP_B -x 10.98.0.3 -D $IP_A -M "$(mac_of $A)" \
	-S "$(mac_of $B)" -n "$MESSAGES" -r "$SEED"
trains=$(($(together) - before))
[ $trains -gt $((MESSAGES / 4)) ]
result $? "$trains of the messages arrived behind another one in the same buffer"
kill -0 $target
result $? "their target is still there"
notes 3 <"$TMP/target"
pair "rdma_cm works" 30 "rping -s -a $IP_A -C 3" "rping -c -a $IP_A -C 3"
gone() { ! kill -0 "$target"; }
kill -9 $target
wait_for 20 gone
result $? "it ends, with all that waits in it"
wait $target 2>/dev/null
check "the device goes" 30 ip netns exec $A rdma link del $DEV_A
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
