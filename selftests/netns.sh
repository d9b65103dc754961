#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Network namespaces: the netdev below a device moves to another one, the RDMA device moves, in shared and in
# exclusive mode; and namespaces that must not see each other.
. "$(dirname "$0")/lib.sh"
. "$SELF/exclusive.sh"
. "$SELF/traffic.sh"

third_down() {
	ip netns del srtest_d 2>/dev/null
	ip netns list 2>/dev/null | grep -qw $C || return 0
	ip -n $C link del veth0 2>/dev/null
	ip netns del $C
}
clean_up() {
	third_down
	hosts_down
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		rdma system set netns shared 2>/dev/null && break
		sleep 0.5
	done
	finish
}
trap clean_up EXIT

port_4791_used() { in_ns "$1" grep -qi ':12B7 ' /proc/net/udp /proc/net/udp6; }
port_4791_free() { ! port_4791_used "$1"; }

# move_netdev FROM TO : with its addresses, which a move loses
move_netdev() {
	ip -n "$1" link set veth0 netns "$2" || return
	in_ns "$2" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad' 2>/dev/null
	ip -n "$2" link set veth0 up && ip -n "$2" addr add $IP_A/24 dev veth0 && ip -n "$2" addr add $IP6_A/64 dev veth0 nodad
}

# The rest is what rdma_rxe does not do: there a device ends when its netdev leaves
if [ "$DRIVER" != sroce ]; then
	ktap_skip "namespaces" "of sroce only"
	ktap_end
fi

devices_seen() { in_ns "$1" ibv_devices | awk 'NR > 2 { print $1 }' | sort | tr '\n' ' '; }

# strays NAME WANTED NAMESPACE DEVICE : sent from there to queue pairs in namespace B
strays() {
	local qpns pid status
	# nothing of the last time: without numbers the sender would be a receiver
	: >"$TMP/stray"
	: >"$TMP/stray"
	ip netns exec $B "$STRAY" -d ${DEV_B}t -i $TOP_A >"$TMP/stray" 2>&1 &
	pid=$!
	wait_for 5 grep -q '^[0-9]' "$TMP/stray"
	qpns=$(head -n 1 "$TMP/stray")
	# shellcheck disable=SC2086 # two numbers
	limit 20 ip netns exec "$3" "$STRAY" -d "$4" -i $TOP_A $qpns >"$TMP/out" 2>&1
	status=$?
	[ $status -eq 0 ] || notes <"$TMP/out"
	kill $pid
	wait $pid
	note "$(tail -n 1 "$TMP/stray")"
	[ $status -eq 0 ] && [ "$(tail -n 1 "$TMP/stray")" = "got $2" ]
	result $? "$1"
}

# one device in each of two namespaces, which see nothing of each other but what the netdevs carry
exclusive_separate() {
	hosts_up 9000
	host_ns $C
	short_orphans $A $B $C
	expect "exclusive: a device in namespace A" exclusive_add $A $DEV_A veth0
	expect "exclusive: a device in namespace B" exclusive_add $B $DEV_B veth0
	[ "$(devices_seen $A)$(devices_seen $B)$(devices_seen $C)" = "$DEV_A $DEV_B " ]
	result $? "exclusive: each sees its own, and others none"
	exists $A $DEV_A && gone $A $DEV_B && gone $B $DEV_A && gone $C $DEV_A && ! rdma link show | grep -q srt_
	result $? "exclusive: so do they with rdma link"
	! in_ns $A ibv_devinfo -d $DEV_B >/dev/null 2>&1 && ! in_ns $A test -e /sys/class/infiniband/$DEV_B
	result $? "exclusive: the other's device cannot be opened"
	verify "exclusive: the two talk over their netdevs" $IP_A $IP_B
	cm "exclusive: rdma_cm" $IP_A $IP_B
}

# What is told of regions of memory is of the namespace of their device; the server has one on demand
exclusive_regions() {
	local pid
	ip netns exec $A ibv_rc_pingpong -o -d $DEV_A -g "$(gid_index $A $DEV_A $IP_A)" >/dev/null 2>&1 &
	pid=$!
	eventually "exclusive: statistics of a region on demand" eval "in_ns $A rdma statistic show mr | grep -q page_faults"
	[ -z "$(in_ns $B rdma statistic show mr)$(in_ns $C rdma statistic show mr)$(rdma statistic show mr)" ]
	result $? "exclusive: in its namespace only"
	kill $pid
	wait $pid 2>/dev/null
}

# two netdevs alike in name, number and address, in two namespaces
exclusive_strays() {
	local ns direct
	if ip -n $A link add t0 index 77 type dummy && ip -n $B link add t0 index 77 type dummy; then
		for ns in $A $B; do
			ip -n "$ns" link set t0 up
			ip -n "$ns" addr add $TOP_A/24 dev t0
		done
		exclusive_add $A ${DEV_A}t t0 && exclusive_add $B ${DEV_B}t t0
		for direct in Y N; do
			param direct $direct
			# Without packets the sender is known, and is not the one that the connection is with
			strays "exclusive, direct=$direct: B gets what B sends" "16 $([ $direct = Y ] && echo 0 || echo 16)" $B ${DEV_B}t
			strays "exclusive, direct=$direct: B gets nothing from A" "0 0" $A ${DEV_A}t
		done
		param direct Y
		link_del $A ${DEV_A}t
		link_del $B ${DEV_B}t
	else
		ktap_skip "exclusive: strays" "no dummy netdev in this kernel"
	fi
}

# the RDMA device goes to another namespace, and its netdev follows it
exclusive_moved() {
	local watch
	: >"$TMP/watch"
	ip netns exec $A ibv_asyncwatch -d $DEV_A >"$TMP/watch" 2>&1 &
	watch=$!
	wait_for 5 grep -q . "$TMP/watch"
	sleep 0.3
	traffic_start 30 $IP_A $IP_B
	expect "exclusive: the RDMA device moves to namespace C, in use" in_ns $A rdma dev set $DEV_A netns $C
	traffic_end "exclusive, moved: connections end" 3
	kill $watch 2>/dev/null
	wait $watch 2>/dev/null
	grep -qi 'fatal' "$TMP/watch"
	result $? "exclusive, moved: who had it open was told"
	gone $A $DEV_A && exists $C $DEV_A && [ "$(devices_seen $A)" = "" ] && [ "$(devices_seen $C)" = "$DEV_A " ]
	result $? "exclusive, moved: C sees it, A does not"
	expect "exclusive, moved: the netdev follows" move_netdev $A $C
	eventually "exclusive, moved: GIDs" has_all_gids $C $DEV_A veth0
	port_4791_free $A && port_4791_used $C
	result $? "exclusive, moved: UDP port 4791 is free in A and used in C"
	run_pair 60 $C "$VERIFY -d $DEV_A -i $IP_A" $B "$VERIFY -d $DEV_B -i $IP_B -n $rounds $IP_A"
	result $? "exclusive, moved: new connections work"
	run_pair 40 $C "rping -s -a $IP_A -C 10 -V" $B "rping -c -a $IP_A -C 10 -V"
	result $? "exclusive, moved: rdma_cm"
}

# users lose their device once more, now that one disassociation is behind it
exclusive_deleted() {
	SERVER_NS=$C traffic_start 30 $IP_A $IP_B
	expect "exclusive: the link is deleted there, in use" link_del $C $DEV_A
	traffic_end "exclusive, deleted: connections end" 3
	port_4791_free $C
	result $? "exclusive, deleted: UDP port 4791 is free"
}

# a namespace that ends gives its device back to the first one, or takes it with its netdev
exclusive_ended() {
	expect "exclusive: a device in namespace C" exclusive_add $C $DEV_C veth0
	third_down
	eventually "exclusive: namespace removed, device gone" gone $B $DEV_C
	wait_for 5 eval "! rdma link show | grep -qw $DEV_C/1"
	result $? "exclusive: not in the first namespace either"
}

exclusive_case() {
	exclusive_separate
	exclusive_regions
	exclusive_strays
	exclusive_moved
	exclusive_deleted
	exclusive_ended
}

# It can be chosen only while there is no other namespace
driver_load
if wait_for 15 rdma system set netns exclusive; then
	exclusive_case
	hosts_down
	eventually "shared mode again" rdma system set netns shared
else
	ktap_skip "exclusive mode" "there are other namespaces"
fi

devices_up 9000
[ "$(devices_seen $A)" = "$DEV_A $DEV_B " ]
result $? "shared: everybody sees all devices"
! refused=$(in_ns $A rdma dev set $DEV_A netns $B 2>&1) && [ -n "$refused" ]
result $? "shared: a device cannot be moved ($refused)"
verify "shared: they talk" $IP_A $IP_B

devices_up 9000
host_ns $C
short_orphans $A $B $C
number=$(dev_number $A $DEV_A)
traffic_start 30 $IP_A $IP_B
sleep 1
expect "the netdev moves under traffic" move_netdev $A $C
# the control connection hangs, too: its address is gone
kill "${traffic[@]}" 2>/dev/null
traffic_end "netdev moved: connections end" 0 3 143
[ "$(dev_number $C $DEV_A)" = "$number" ]
result $? "netdev moved: it is still the same device"
port_4791_free $A && port_4791_used $C
result $? "netdev moved: UDP port 4791 moved with it"
eventually "netdev moved: it has its GIDs there" has_all_gids $C $DEV_A veth0
run_pair 60 $C "$VERIFY -d $DEV_A -i $IP_A" $B "$VERIFY -d $DEV_B -i $IP_B -n $rounds $IP_A"
result $? "netdev moved: new connections work"
run_pair 40 $C "rping -s -a $IP_A -C 10 -V" $B "rping -c -a $IP_A -C 10 -V"
result $? "netdev moved: rdma_cm"
expect "the netdev moves back" move_netdev $C $A
eventually "moved back: GIDs" has_all_gids $A $DEV_A veth0
verify "moved back: new connections work" $IP_A $IP_B

# where somebody else has the port there is no room for it
ip netns exec $C python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 4791))
time.sleep(60)' &
squatter=$!
wait_for 5 port_4791_used $C
ip -n $A link set veth0 netns $C
eventually "a namespace whose UDP port 4791 is taken: the device is gone" gone $C $DEV_A
kill $squatter
wait $squatter 2>/dev/null
third_down
hosts_down

# GIDs of a VLAN in another namespace than the device: nobody listens there for it
hosts_up 9000
host_ns $C
link_add $A $DEV_A
if ip -n $A link add t0 link veth0 type vlan id 7 && ip -n $A link set t0 netns $C; then
	ip -n $C link set t0 up
	ip -n $C addr add $TOP_A/24 dev t0
	if wait_for 3 has_gid $A $DEV_A $TOP_A; then
		limit 20 ip netns exec $C "$STRAY" -d $DEV_A -i $TOP_A >"$TMP/out" 2>&1
		status=$?
		notes 2 <"$TMP/out"
		[ $status -eq 2 ] && grep -qi 'not supported' "$TMP/out"
		result $? "a GID of another namespace is refused"
	else
		ktap_skip "a GID of another namespace is refused" "the core has no such GID"
	fi
else
	ktap_skip "a GID of another namespace is refused" "no VLANs in this kernel"
fi
third_down

# ipvlan in mode l3s: IP has the packets for a container's netdev at a hook of the host, through the netdev below

# l3s_up ORDER : a container with a device whose netdev has the number that the host's has, which is made before or after
l3s_up() {
	hosts_up 9000
	host_ns $C
	[ "$1" = after ] || link_add $A $DEV_A || return
	ip -n $A link add link veth0 name t0 index "$(in_ns $A cat /sys/class/net/veth0/ifindex)" netns $C type ipvlan mode l3s || return
	in_ns $C sh -c 'echo 0 >/proc/sys/net/ipv6/conf/t0/accept_dad' 2>/dev/null
	ip -n $C link set t0 up && ip -n $C addr add $TOP_A/24 dev t0 && ip -n $C addr add $TOP6_A/64 dev t0 nodad &&
		ip -n $C route add default dev t0 && ip -n $C -6 route add default dev t0 || return
	ip -n $B route add $TOP_A via $IP_A && ip -n $B -6 route add $TOP6_A via $IP6_A || return
	link_add $C $DEV_C t0 && link_add $B $DEV_B || return
	[ "$1" = before ] || link_add $A $DEV_A
}

for order in before after; do
	if ! l3s_up $order >"$TMP/out" 2>&1; then
		ktap_skip "ipvlan l3s" "not in this kernel: $(tail -n 1 "$TMP/out")"
		third_down
		continue
	fi
	for ip in "$TOP_A $IP_B" "$TOP6_A $IP6_B"; do
		run_pair 60 $C "$VERIFY -d $DEV_C -i ${ip% *}" $B "$VERIFY -d $DEV_B -i ${ip#* } -n $rounds ${ip% *}"
		result $? "ipvlan l3s, the host's device is made $order: ${ip% *}"
	done
	verify "ipvlan l3s, the host's device is made $order: that one" $IP_A $IP_B
	link_del $C $DEV_C
	third_down
done

# storm SECONDS : netdev, device and processes come and go, none waiting for the other
storm() {
	local end=$((SECONDS + $1))
	while [ $SECONDS -lt $end ]; do
		move_netdev $A $C
		move_netdev $C $A
	done &
	while [ $SECONDS -lt $end ]; do
		in_ns $A rdma link add $DEV_A type "$DRIVER" netdev veth0 || in_ns $C rdma link add $DEV_A type "$DRIVER" netdev veth0
		sleep "0.$((RANDOM % 5))"
		in_ns $A rdma link del $DEV_A
	done &
	while [ $SECONDS -lt $end ]; do
		timeout "0.$((1 + RANDOM % 5))" ip netns exec $A "$STRAY" -d $DEV_A -i $IP_A
	done &
	while [ $SECONDS -lt $end ]; do
		timeout 2 ip netns exec $B ping -q -c 3 -i 0.2 $IP_A
		host_ns srtest_d && ip netns del srtest_d
	done &
	wait
}

devices_up 9000
host_ns $C
short_orphans $A $B $C
storm $((6 * SLOW)) >"$TMP/out" 2>&1
in_ns $A rdma link del $DEV_A 2>/dev/null
in_ns $A test -e /sys/class/net/veth0
result $? "a storm of moves: the netdev is where it was"
expect "a storm of moves: a device is made again" link_add $A $DEV_A
verify "a storm of moves: it works" $IP_A $IP_B
third_down
hosts_down
! rdma link show | grep -q srt_
result $? "a storm of moves: no device is left over"
ktap_end
