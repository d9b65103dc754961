#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Classes: the class that an administrator gives a device, or rdma_cm's connections, or an application its addresses;
# the queue that packets of a service level leave through, notifications in one of their own; and what spreads queue
# pairs over the paths of a network that has several.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"
. "$SELF/marked.sh"

VERIFY=$(program verify) && VERIFY_UD=$(program verify_ud) && CHECK=$(program icrc_check) ||
	bail "verify or icrc_check was not built"
[ "$DRIVER" = sroce ] || { ktap_skip "classes" "rdma_rxe sends all packets in one"; ktap_end; }
amount n 100 1000
amount ROUNDS 1 3
CM=/sys/kernel/config/rdma_cm
R1=srtest_r1 R2=srtest_r2
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B
down() {
	rmdir "$CM"/* 2>/dev/null
	finish
	ip netns del "$R1" 2>/dev/null
	ip netns del "$R2" 2>/dev/null
}
trap down EXIT

verify() {
	pair "$1" 120 "$ONE_CPU $VERIFY -d $DEV_A -i $IP_A" "$ONE_CPU $VERIFY -d $DEV_B -i $IP_B -T 18 -n $ROUNDS ${*:2} $IP_A"
}
datagrams() {
	pair "$1" 60 "$VERIFY_UD -d $DEV_A -i $IP_A" "$VERIFY_UD -d $DEV_B -i $IP_B -n $n ${*:2} $IP_A"
}

# --- a class for the device -------------------------------------------------------------------------------

class_file() { echo "/sys/class/infiniband/$1/ports/1/qos/traffic_class"; }
both_classes() { echo "$1" >"$(class_file $DEV_A)" && echo "$1" >"$(class_file $DEV_B)"; }

# No marks and notifications of the driver's own, which are not about the class that was asked for
unmarked() { for dev in $DEV_A $DEV_B; do echo 0 >"/sys/class/infiniband/$dev/ports/1/cc_params/rp_enable"; done; }

devices_up 9000
unmarked
workers_on_one_cpu
trap 'workers_anywhere; down' EXIT
[ "$(cat "$(class_file $DEV_A)")" = 0 ]
result $? "a device has class 0"
for value in 256 -1 high ''; do
	! echo "$value" 2>/dev/null >"$(class_file $DEV_A)" && [ "$(cat "$(class_file $DEV_A)")" = 0 ]
	result $? "'$value' is no class"
done
both_classes 0x6b && [ "$(cat "$(class_file $DEV_A)")" = 104 ]
result $? "the ECN bits of a class are not an administrator's either"
marked "the device's class" "-C 0x68" verify "verify"
ONE_WAY=1 marked "the device's class, datagrams" "-C 0x68" datagrams "datagrams"
marked "the device's class, rdma_cm" "-C 0x68" pair "rping" 30 "rping -s -a $IP_A -C 10 -V" "rping -c -a $IP_A -C 10 -V"
marked "an application's class instead" "-C 0x28" verify "verify, class 0x28" -C 0x28
both_classes 0
marked "class 0 again" "-C 0" verify "verify"

# --- rdma_cm's ----------------------------------------------------------------------------------------------

marked "rdma_set_option()" "-C 0x48" pair "ucmatose -t 72" 30 "ucmatose -b $IP_A -C 10 -S 1000" \
	"ucmatose -s $IP_A -C 10 -S 1000 -t 72"
if mkdir -p "$CM/$DEV_B" 2>/dev/null; then
	echo 96 >"$CM/$DEV_B/ports/1/default_roce_tos"
	marked "default_roce_tos" "-C 0x60" pair "rping" 30 "rping -s -a $IP_A -C 10 -V" "rping -c -a $IP_A -C 10 -V"
	rmdir "$CM/$DEV_B"
else
	ktap_skip "default_roce_tos" "no configfs of rdma_cm"
fi
workers_anywhere
trap down EXIT

# --- queues -----------------------------------------------------------------------------------------------------

# Four classes with a queue each: priorities 1, 2 and 3 have theirs, 6 has that of 1, all others the first
queues_up() {
	hosts_down
	host_ns $A && host_ns $B || return
	ip link add veth0 netns $A mtu 9000 numtxqueues 4 numrxqueues 4 type veth \
		peer name veth0 netns $B mtu 9000 numtxqueues 4 numrxqueues 4 || return
	ip -n $A link set veth0 up && ip -n $A addr add $IP_A/24 dev veth0
	ip -n $B link set veth0 up && ip -n $B addr add $IP_B/24 dev veth0
	for ns in $A $B; do
		tc -n "$ns" qdisc add dev veth0 root handle 1: mqprio num_tc 4 map 0 1 2 3 0 0 1 0 queues 1@0 1@1 1@2 1@3 hw 0 || return
	done
	link_add $A $DEV_A && link_add $B $DEV_B && unmarked
}
# sent NAMESPACE : packets that have left through each queue
sent() {
	tc -n "$1" -s qdisc show dev veth0 | awk '
		/parent 1:[1-9a-f]/ { for (i = 1; i < NF; i++) if ($i == "parent") { split($(i + 1), p, ":"); q = p[2] } }
		/Sent/ && q { sent[q] = $4; q = 0 }
		END { print sent[1] + 0, sent[2] + 0, sent[3] + 0, sent[4] + 0 }'
}
# through QUEUE NAME COMMAND... : what host B sends leaves through that queue, from 0. (Through queue 0 the two programs
# talk to each other over TCP before they begin, and ARP goes.)
through() {
	local queue=$1 name=$2 before after i bad=0
	shift 2
	read -ra before < <(sent $B)
	"$@"
	read -ra after < <(sent $B)
	for i in 0 1 2 3; do
		after[i]=$((after[i] - before[i]))
		[ "$i" -eq "$queue" ] || [ "${after[i]}" -le $((i == 0 ? 60 + n / 10 : 0)) ] || bad=1
	done
	note "packets through the queues: ${after[*]}"
	[ "${after[queue]}" -ge 100 ] || bad=1
	result $bad "$name: through queue $queue"
}
if queues_up 2>"$TMP/queues"; then
	through 0 "no service level" verify "verify"
	through 3 "service level 3" verify "verify, service level 3" -L 3
	through 2 "service level 2" datagrams "datagrams, service level 2" -L 2
	# of a TOS without a service level: what a socket with it has, which is 6 here
	through 1 "traffic class 0x10" verify "verify, class 0x10" -C 0x10
	# Notifications: the client reads what the network marks, and tells the server
	tc -n $A qdisc add dev veth0 clsact && tc -n $A filter add dev veth0 egress protocol ip matchall \
		action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h
	read -ra before < <(sent $B)
	told=$(counter $B $DEV_B np_cnp_sent)
	stock_gids
	WHERE="marked responses" perftest ib_read_bw -s 1048576 -n "$n" --sl 3
	read -ra after < <(sent $B)
	told=$(($(counter $B $DEV_B np_cnp_sent) - told))
	note "$told notifications; packets through queues 1 and 3: $((after[1] - before[1])) $((after[3] - before[3]))"
	[ $told -gt 0 ] && [ $((after[1] - before[1])) -ge $told ] && [ $((after[1] - before[1])) -le $((told + 10)) ]
	result $? "notifications leave through the queue of their priority"
else
	notes <"$TMP/queues"
	ktap_skip "queues" "no mqprio in this kernel"
fi

# --- paths ---------------------------------------------------------------------------------------------------------

# Two routers with two cables between them, of which they choose one by addresses and UDP ports: those of a bond, or two
# routes of equal cost, which not every kernel in the lab has
cable() { # cable NAMESPACE NETDEV NAMESPACE NETDEV
	ip link add "$2" netns "$1" mtu 9000 type veth peer name "$4" netns "$3" mtu 9000 &&
		ip -n "$1" link set "$2" up && ip -n "$3" link set "$4" up
}
# paths_up FUNCTION : which joins the cables of the routers
paths_up() {
	local ns
	paths_down
	for ns in $A $B $R1 $R2; do host_ns "$ns" || return; done
	for ns in $R1 $R2; do in_ns "$ns" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' || return; done
	cable $A veth0 $R1 host && cable $B veth0 $R2 host && cable $R1 one $R2 one && cable $R1 two $R2 two || return
	ip -n $A addr add 10.98.1.1/24 dev veth0 && ip -n $R1 addr add 10.98.1.9/24 dev host &&
		ip -n $B addr add 10.98.2.1/24 dev veth0 && ip -n $R2 addr add 10.98.2.9/24 dev host &&
		ip -n $A route add default via 10.98.1.9 && ip -n $B route add default via 10.98.2.9 && "$1" || return
	wait_for 10 in_ns $A ping -c 1 -W 1 10.98.2.1 || return
	link_add $A $DEV_A && link_add $B $DEV_B
}
paths_down() {
	hosts_down
	ip netns del $R1 2>/dev/null
	ip netns del $R2 2>/dev/null
}
bonded() {
	local ns
	for ns in $R1 $R2; do
		ip -n "$ns" link add both mtu 9000 type bond mode balance-xor xmit_hash_policy layer3+4 miimon 100 || return
		for cable in one two; do
			ip -n "$ns" link set "$cable" down && ip -n "$ns" link set "$cable" master both && ip -n "$ns" link set "$cable" up || return
		done
		ip -n "$ns" link set both up
	done
	ip -n "$R1" addr add 10.98.3.1/24 dev both && ip -n "$R2" addr add 10.98.3.2/24 dev both &&
		ip -n "$R1" route add 10.98.2.0/24 via 10.98.3.2 && ip -n "$R2" route add 10.98.1.0/24 via 10.98.3.1
}
equal_cost() {
	local ns n=0
	for ns in $R1 $R2; do
		n=$((n + 1))
		# by ports, too
		in_ns "$ns" sh -c 'echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy' || return
		ip -n "$ns" addr add "10.98.3.$n/24" dev one && ip -n "$ns" addr add "10.98.4.$n/24" dev two || return
	done
	ip -n "$R1" route add 10.98.2.0/24 nexthop via 10.98.3.2 nexthop via 10.98.4.2 &&
		ip -n "$R2" route add 10.98.1.0/24 nexthop via 10.98.3.1 nexthop via 10.98.4.1
}
# crossed CABLE : bytes, in both directions
crossed() { in_ns $R1 sh -c "cat /sys/class/net/$1/statistics/[rt]x_bytes" | awk '{ n += $1 } END { print n }'; }
# spread NAME COMMAND... : over both cables, none less than a twentieth
spread() {
	local name=$1 one two
	shift
	one=$(crossed one) two=$(crossed two)
	"$@"
	one=$(($(crossed one) - one)) two=$(($(crossed two) - two))
	note "$one and $two bytes"
	[ $((one * 20)) -gt $((one + two)) ] && [ $((two * 20)) -gt $((one + two)) ]
	result $? "$name: over both paths"
}
# paths NAME : what spreads over two of them
paths() {
	SERVER_IP=10.98.1.1 CLIENT_IP=10.98.2.1 IP_A=10.98.1.1 WHERE=$1
	stock_gids
	spread "$WHERE: 16 reliable connections" perftest ib_write_bw -q 16 -s 65536 -n "$n"
	spread "$WHERE: datagrams of 16 queue pairs" perftest ib_send_bw -c UD -q 16 -s 1024 -n "$n"
	# each is made by messages with a flow label of its own
	packets=$(counter $A $DEV_A rdma_rx_packets)
	spread "$WHERE: 16 connections of rdma_cm with little to say" pair "$WHERE: ucmatose" 60 "ucmatose -b $IP_A -c 16 -C 1 -S 10" \
		"ucmatose -s $IP_A -c 16 -C 1 -S 10"
	note "$(($(counter $A $DEV_A rdma_rx_packets) - packets)) packets"
}
if [ -n "$SHORT" ]; then
	note "two paths: left out"
else
	if paths_up bonded 2>"$TMP/paths"; then
		paths "two cables of a bond"
	else
		notes <"$TMP/paths"
		ktap_skip "two cables of a bond" "no bonds in this kernel"
	fi
	if paths_up equal_cost 2>"$TMP/paths"; then
		paths "two routes of equal cost"
	else
		notes <"$TMP/paths"
		ktap_skip "two routes of equal cost" "not in this kernel"
	fi
fi

# --- receive queues -------------------------------------------------------------------------------------------------

# What arrives is spread by addresses and UDP ports over four receive queues, as a NIC spreads it: of a veth with a NAPI it is the
# sender's stack that chooses one, by the flow of a packet
RX_IP_A=10.98.0.1
rx_queues_up() {
	paths_down
	IP_A=$RX_IP_A
	host_ns $A && host_ns $B || return
	ip link add veth0 netns $A mtu 9000 numtxqueues 4 numrxqueues 4 type veth \
		peer name veth0 netns $B mtu 9000 numtxqueues 4 numrxqueues 4 || return
	ip -n $A link set veth0 up && ip -n $A addr add $IP_A/24 dev veth0
	ip -n $B link set veth0 up && ip -n $B addr add $IP_B/24 dev veth0
	# a veth has a NAPI for what its peer has not coupled already
	in_ns $A ethtool -K veth0 gro on && in_ns $B ethtool -K veth0 tso off || return
	arrived >/dev/null && link_add $A $DEV_A && link_add $B $DEV_B && unmarked
}
# arrived : buffers that each receive queue of host A has taken
arrived() {
	in_ns $A ethtool -S veth0 | awk '
		/rx_queue_[0-9]+_xdp_packets:/ { n[$1] = $2; q++ }
		END { for (i = 0; i < 4; i++) printf "%d ", n["rx_queue_" i "_xdp_packets:"]; print ""; exit q != 4 }'
}
# received NAME COMMAND... : through more than one, and none has nearly all
received() {
	local name=$1 before after i all=0 most=0 used=0
	shift
	read -ra before < <(arrived)
	"$@"
	read -ra after < <(arrived)
	for i in 0 1 2 3; do
		after[i]=$((after[i] - before[i]))
		all=$((all + after[i]))
		[ "${after[i]}" -le "$most" ] || most=${after[i]}
		[ "${after[i]}" -eq 0 ] || used=$((used + 1))
	done
	note "buffers through the receive queues: ${after[*]}"
	[ $used -ge 3 ] && [ $((most * 4)) -lt $((all * 3)) ]
	result $? "$name: over the receive queues"
}
if rx_queues_up 2>"$TMP/queues"; then
	SERVER_IP=$IP_A CLIENT_IP=$IP_B WHERE="receive queues"
	stock_gids
	received "16 reliable connections" perftest ib_write_bw -q 16 -s 65536 -n "$n"
	received "datagrams of 16 queue pairs" perftest ib_send_bw -c UD -q 16 -s 1024 -n "$n"
	received "16 connections of rdma_cm with little to say" pair "receive queues: ucmatose" 60 \
		"ucmatose -b $IP_A -c 16 -C 1 -S 10" "ucmatose -s $IP_A -c 16 -C 1 -S 10"
else
	notes <"$TMP/queues"
	ktap_skip "receive queues" "this kernel's veth does not tell them apart"
fi
ktap_end
