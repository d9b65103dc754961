#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Multicast: three hosts on a bridge that snoops, so that only members get what is sent to a group; and mckey.
. "$(dirname "$0")/lib.sh"

MCAST=$(program mcast) || bail "mcast was not built"
C=srtest_c SWITCH=srtest_s DEV_C=srt_c IP_C=10.98.0.3 IP6_C=fd98::3
GROUP4=239.98.1.2 GROUP6=ff0e::98:1

three_down() {
	link_del $C $DEV_C 2>/dev/null
	hosts_down
	ip netns del $C 2>/dev/null
	ip netns del $SWITCH 2>/dev/null
	return 0
}
trap 'three_down; finish' EXIT

# a host's end of a cable to the switch
plug() {
	local ns=$1 n=$2
	ip link add veth0 netns "$ns" mtu 9000 type veth peer name "port$n" netns $SWITCH mtu 9000 || return
	ip -n $SWITCH link set "port$n" master br0 up
	in_ns "$ns" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad' 2>/dev/null
	ip -n "$ns" link set veth0 up
	ip -n "$ns" addr add "10.98.0.$n/24" dev veth0
	ip -n "$ns" addr add "fd98::$n/64" dev veth0 nodad
}

# A switch asks who is there before it believes that somebody is not.
switch_up() {
	host_ns $SWITCH || return
	ip -n $SWITCH link add br0 mtu 9000 type bridge mcast_snooping "$1" \
		mcast_query_response_interval 10 mcast_startup_query_interval 20 mcast_last_member_interval 10 || return
	ip -n $SWITCH addr add 10.98.0.254/24 dev br0
	ip -n $SWITCH link set br0 up
	# by itself: it sends everything everywhere for as long as the interval of before says, 10 s
	ip -n $SWITCH link set br0 type bridge mcast_querier "$1"
}

three_up() {
	three_down
	switch_up "$1" || return
	host_ns $A && host_ns $B && host_ns $C && plug $A 1 && plug $B 2 && plug $C 3 || return
	link_add $A $DEV_A && link_add $B $DEV_B && link_add $C $DEV_C
}

# groups NAME GROUP COMMAND IP_A IP_B IP_C
groups() {
	local before
	before=$(counter $C $DEV_C rx_multicast_packets)
	program_verdicts "$1" 120 "$MCAST" -g "$2" -c "$3" -d $DEV_A -i "$4" -d $DEV_B -i "$5" -d $DEV_C -i "$6"
	[ "$(counter $C $DEV_C rx_multicast_packets)" -gt "$before" ]
	result $? "$1: the device counted them"
}

is_in() { echo "ip -n $B maddr show dev veth0 | grep -qw $1"; }
# the switch knows it as well, and of host C
is_known() { echo "$(is_in "$1") && [ \$(bridge -n $SWITCH mdb show | grep -cE 'port port[23] grp $1 ') = 2 ]"; }

# cable NAME few|all : what of five datagrams of 1500 bytes between hosts A and B comes down the cable to host C
cable() {
	local name=$1 bytes
	bytes=$(in_ns $C cat /sys/class/net/veth0/statistics/rx_bytes)
	mckey_pair $A $IP_A $B $IP_B $GROUP4 -S 1500
	result $? "$name: mckey between hosts A and B"
	bytes=$(($(in_ns $C cat /sys/class/net/veth0/statistics/rx_bytes) - bytes))
	note "$bytes bytes came to host C"
	in_ns $SWITCH bridge mdb show | notes
	if [ "$2" = few ]; then [ $bytes -lt 4000 ]; else [ $bytes -ge 7500 ]; fi
	result $? "$name: $2 of them come to host C, which is not a member"
}

mckey_case() {
	mckey_pair $A $IP_A $B $IP_B $GROUP4 -S 500
	result $? "mckey"
	mckey_pair $A $IP_A $B $IP_B $GROUP4 -S 500 -l
	result $? "mckey without loopback"
}

driver_load
if ! three_up 0; then
	ktap_skip "multicast" "no bridge in this kernel"
	ktap_end
fi
groups "IPv4" $GROUP4 "$(is_in $GROUP4)" $IP_A $IP_B $IP_C
groups "IPv6" $GROUP6 "$(is_in $GROUP6)" $IP6_A $IP6_B $IP6_C
cable "without snooping" all
if three_up 1 && in_ns $SWITCH [ -e /sys/class/net/br0/bridge/multicast_snooping ]; then
	# the switch has asked, and nobody has answered
	sleep 2
	groups "IPv4, snooping" $GROUP4 "$(is_known $GROUP4)" $IP_A $IP_B $IP_C
	groups "IPv6, snooping" $GROUP6 "$(is_known $GROUP6)" $IP6_A $IP6_B $IP6_C
	cable "snooping" few
else
	ktap_skip "snooping" "the bridge of this kernel does not snoop"
fi
three_down
devices_up 9000
mckey_case
ktap_end
