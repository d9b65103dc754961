#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Raw packets and packet sockets: a sniffer hears what a packet socket on the netdev hears, and no more, whoever sends it and
# whatever stands on top of the netdev; and what may be sent is the same.
. "$(dirname "$0")/lib.sh"
[ "$DRIVER" = sroce ] || { ktap_skip "raw packets and packet sockets" "not with $DRIVER"; ktap_end; }
splats=$(splats)
devices_up 1500
same=$(program raw_same) || bail "raw_same was not built"

program_verdicts "sending" 60 "$same" -d $DEV_A -i $IP_A -n $A -s

# What leaves is what is shown
for ns in $A $B; do
	in_ns "$ns" ethtool -K veth0 tx off gso off tso off gro off >"$TMP/ethtool" 2>&1
done
on_a ethtool -k veth0 | grep -E '^(tx-checksumming|generic-(segmentation|receive)-offload|tcp-segmentation-offload): on'
[ "${PIPESTATUS[1]}" -ne 0 ]
result $? "nothing is left to the netdev"

# mark BYTES : an echo request with which the comparison begins (375) or ends (376). Nothing else is on its way then: what the
# host sends comes to a sniffer by a worker, and so behind what it receives.
mark() {
	sleep 0.5
	on_b ping -q -c 1 -W 5 $IP_A >"$TMP/mark"
	sleep 0.5
	on_b ping -q -c 1 -W 5 -s $(($1 - 42)) $IP_A >"$TMP/mark"
	sleep 0.5
}

on_top() {
	local ns n=0
	for ns in $A $B; do
		n=$((n + 1))
		ip -n "$ns" link add link veth0 name v5 type vlan id 5 && ip -n "$ns" addr add 10.95.0.$n/24 dev v5 && ip -n "$ns" link set v5 up
		ip -n "$ns" link add link veth0 name mac type macvlan mode bridge && ip -n "$ns" addr add 10.96.0.$n/24 dev mac &&
			ip -n "$ns" link set mac up
	done
}

# traffic : of the host, of what stands on top of it, of others, and of the device
traffic() {
	local pings="-q -c 5 -i 0.01 -W 2"
	# shellcheck disable=SC2086 # words
	{
		on_a ping $pings $IP_B
		on_b ping $pings $IP6_A
		on_b ping $pings -s 4000 $IP_A
		on_b ping $pings 10.95.0.1
		on_a ping $pings -s 3000 10.96.0.2
		on_b ping $pings -b 10.98.0.255
		on_b ping $pings -I veth0 224.0.0.1
		# frames for somebody else
		ip -n $B neigh replace 10.98.0.77 lladdr 02:00:00:00:77:77 dev veth0
		on_b ping $pings 10.98.0.77
		# frames that the host never gets
		on_a tc qdisc add dev veth0 clsact
		on_a tc filter add dev veth0 ingress matchall action drop
		on_b ping $pings -W 1 -c 3 $IP_A
		on_a tc qdisc del dev veth0 clsact
	} >"$TMP/pings" 2>&1
	FOREVER=1 run_pair 30 $A "iperf3 -s -1 -B $IP_A" $B "iperf3 -c $IP_A -n 100000 -l 4K -b 2M -M 1000" >"$TMP/iperf" 2>&1
	run_pair 30 $A "ibv_rc_pingpong -d $DEV_A -g $(gid_index $A $DEV_A $IP_A) -n 20 -s 3000" \
		$B "ibv_rc_pingpong -d $DEV_B -g $(gid_index $B $DEV_B $IP_B) -n 20 -s 3000 $IP_A"
	result $? "RoCE of the device itself"
	# its own raw packets, some of them cut by the stack
	limit 60 in_ns $B "$(program raw_vlan)" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B >"$TMP/raw_vlan" 2>&1
	tail -n 1 "$TMP/raw_vlan" | grep -q ' wrong$'
	result $? "raw packets of the device"
}

on_top
result $? "a VLAN and a macvlan on top"
mkfifo "$TMP/go"
exec 9<>"$TMP/go"
limit 120 "$same" -d $DEV_A -i $IP_A -n $A <"$TMP/go" >"$TMP/same" 2>&1 &
pid=$!
wait_for 20 grep -q '^# ready' "$TMP/same"
result $? "both listen"
mark 375
traffic
mark 376
echo >&9
wait $pid
notes 20 <"$TMP/same"
verdicts "hearing" "$TMP/same"
tail -n 1 "$TMP/same" | grep -q '^0 wrong$'
result $? "hearing: came to its end"
unharmed "$splats"
