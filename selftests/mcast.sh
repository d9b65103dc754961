#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Multicast: three hosts on a bridge that snoops, so that only members get what is sent to a group; and mckey.
. "$(dirname "$0")/lib.sh"

MCAST=$(program mcast) && IDLER=$(program idler) || bail "mcast or idler was not built"
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

# --- two links of one host, in a VRF --------------------------------------------------------------------

# Host A has two of them, each with a device, which are members each for itself
vrf_up() {
	local i
	three_down
	switch_up 0 && host_ns $A && host_ns $B && plug $A 1 && plug $B 3 || return
	ip -n $A link add blue type vrf table 10 && ip -n $A link set blue up || return
	ip link add veth1 netns $A mtu 9000 type veth peer name port2 netns $SWITCH mtu 9000 && ip -n $SWITCH link set port2 master br0 up || return
	# of itself it hears by the other link, too
	on_a sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.accept_local=1
	for i in 0 1; do
		in_ns $A sh -c "echo 0 >/proc/sys/net/ipv6/conf/veth$i/accept_dad; echo 0 >/proc/sys/net/ipv4/conf/veth$i/rp_filter" 2>/dev/null
		ip -n $A link set veth$i master blue && ip -n $A link set veth$i up && ip -n $A addr replace 10.98.0.$((i + 1))/24 dev veth$i &&
			ip -n $A addr replace fd98::$((i + 1))/64 dev veth$i nodad || return
	done
	link_add $A $DEV_A && link_add $A ${DEV_A}1 veth1 && link_add $B $DEV_B
}

# vrf_groups NAME GROUP IP IP IP
vrf_groups() {
	program_verdicts "$1" 120 "$MCAST" -g "$2" -d $DEV_A -i "$3" -d ${DEV_A}1 -i "$4" -d $DEV_B -i "$5"
}

vrf() {
	if vrf_up >"$TMP/out" 2>&1; then
		vrf_groups "VRF, IPv4" $GROUP4 10.98.0.1 10.98.0.2 10.98.0.3
		vrf_groups "VRF, IPv6" $GROUP6 fd98::1 fd98::2 fd98::3
		link_del $A ${DEV_A}1
	else
		ktap_skip "VRF" "not in this kernel: $(tail -n 1 "$TMP/out")"
	fi
	three_down
}

# --- a netdev that becomes one of another kind -----------------------------------------------------------

# ARPHRD_TUNNEL6, with addresses of 16 bytes
ETHERNET=1 TUNNEL6=769

# tap_hold : makes it, and as whoever has its file makes it one of each type that is read (TUNSETLINK)
tap_hold() {
	# TUNSETIFF with IFF_TAP and IFF_NO_PI
	exec ip netns exec $A python3 -uc '
import fcntl, struct, sys
tap = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH22x", b"t0", 0x1002))
print("made")
for line in sys.stdin:
    fcntl.ioctl(tap, 0x400454cd, int(line))
    print("changed")'
}

# tap_says WORD
tap_says() {
	local word
	read -rt $((10 * SLOW)) word <&"${TAP[0]}" && [ "$word" = "$1" ]
}

# tap_is TYPE : and up
tap_is() {
	ip -n $A link set t0 down && echo "$1" >&"${TAP[1]}" && tap_says changed && ip -n $A link set t0 up &&
		wait_for 5 grep -q ACTIVE "/sys/class/infiniband/$DEV_A/ports/1/state"
}

tap_drop() {
	kill "$TAP_PID"
	wait "$TAP_PID"
} 2>/dev/null

# what the tap's filter has of the group's MAC address, and how often; with more behind that, too
# shellcheck disable=SC2016 # awk's fields
tap_filter() { in_ns $A awk '$2 == "t0" && $5 ~ /^01005e620102/ { print $5, $3 }' /proc/net/dev_mcast; }
filter_is() { [ "$(tap_filter)" = "$1" ]; }

# with RoCE v1 the driver tells the filter, too
tap() {
	hosts_up 9000
	modprobe -q tun
	coproc TAP { tap_hold 2>"$TMP/out"; }
	if ! tap_says made; then
		ktap_skip "a tap that changes its kind" "$(tail -n 1 "$TMP/out")"
		return
	fi
	ip -n $A link set t0 up && ip -n $A addr add 10.96.0.1/24 dev t0
	echo Y >/sys/module/sroce/parameters/roce_v1
	link_add $A $DEV_A t0
	echo N >/sys/module/sroce/parameters/roce_v1
	tap_is $TUNNEL6
	result $? "a tap is no Ethernet any more"
	idle $DEV_A 10.96.0.1 -g $GROUP4
	filter_is ""
	result $? "its filter is told no Ethernet address: '$(tap_filter)'"
	tap_is $ETHERNET
	wait_for 5 filter_is "01005e620102 2"
	result $? "it is told when it is Ethernet again: '$(tap_filter)'"
	tap_is $TUNNEL6
	filter_is ""
	result $? "no more once it is none: '$(tap_filter)'"
	idler_end
	tap_is $ETHERNET
	wait_for 5 filter_is ""
	result $? "nothing is left when the process has ended: '$(tap_filter)'"
	tap_drop
	hosts_down
}

# --- netdevs that go, with a member that stays ------------------------------------------------------

IDLE_GROUPS="$GROUP4 $GROUP6"

# both groups have the netdev as a member
has_joined() { local g; for g in $IDLE_GROUPS; do ip -n "$1" maddr show dev "$2" | grep -qw "$g" || return; done; }

# idle DEVICE IP OPTIONS : a process that does nothing, from a namespace that has no part in it
idle() {
	local device=$1 ip=$2
	shift 2
	: >"$TMP/idler"
	ip netns exec $B "$IDLER" -d "$device" -i "$ip" "$@" >"$TMP/idler" 2>&1 &
	idler=$!
	wait_for 10 grep -q idle "$TMP/idler"
	result $? "a process that does nothing but $*"
	notes <"$TMP/idler"
}

# goes NAME COMMAND... : soon, though the process stays. One that waits for a netdev cannot be killed, and so the process is.
goes() {
	local name=$1 pid status bad=0
	shift
	"$@" >"$TMP/goes" 2>&1 &
	pid=$!
	wait_for 10 eval "! kill -0 $pid" || { bad=1 && note "it waits for the process" && kill -9 $idler; }
	wait $pid
	status=$?
	[ $status -eq 0 ] || { bad=1 && note "status $status: $*" && notes <"$TMP/goes"; }
	kill -0 $idler 2>/dev/null || { bad=1 && wait $idler; note "the process has ended with status $?"; }
	result $bad "$name"
}

idler_end() {
	kill $idler
	wait $idler
} 2>/dev/null

make_bond() {
	ip -n $A link add t0 type bond mode active-backup miimon 20 && ip -n $A link set veth0 down &&
		ip -n $A link set veth0 master t0 && ip -n $A link set t0 up && ip -n $A addr add 10.99.0.1/24 dev t0
}

idle_member() {
	local bond=1
	hosts_up 9000
	make_bond >"$TMP/out" 2>&1 || bond=0
	ip -n $A addr replace $IP_A/24 dev veth0
	link_add $A $DEV_A
	idle $DEV_A $IP_A -g $GROUP4 -g $GROUP6
	has_joined $A veth0
	result $? "the netdev is a member"
	if [ $bond -eq 0 ]; then
		ktap_skip "a bond that goes" "no bond in this kernel"
	else
		has_joined $A t0
		result $? "so is the bond that it is a slave of"
		goes "the bond goes" ip -n $A link del t0
		has_joined $A veth0
		result $? "the netdev still is a member"
		make_bond
		wait_for 5 has_joined $A t0
		result $? "so is the next bond"
		ip -n $A link set veth0 nomaster
		wait_for 5 eval "! ip -n $A maddr show dev t0 | grep -qw $GROUP4"
		result $? "the bond is none any more when it has no slave"
		ip -n $A link del t0
	fi
	ip -n $A link set veth0 down
	# too small for IPv6
	ip -n $A link set veth0 mtu 1000
	ip -n $A link set veth0 mtu 9000
	ip -n $A link set veth0 up
	wait_for 5 has_joined $A veth0
	result $? "a member again when IP begins anew on the netdev"
	host_ns $C
	ip -n $A link set veth0 netns $C
	ip -n $C link set veth0 up
	wait_for 5 has_joined $C veth0
	result $? "a member in the next network namespace"
	idler_end
	wait_for 5 eval "! ip -n $C maddr show dev veth0 | grep -qE '$GROUP4|$GROUP6'"
	result $? "no member any more when the process has ended"
	three_down
}

# namespaces_end : host A's does, all of it. They are taken apart one after the other: when it is another one's turn, host
# A's netdevs have been waited for.
namespaces_end() {
	ip netns del "$A" && wait_for 5 eval "! ip -n $B link show veth0" || return
	host_ns "$C" && ip link add veth1 netns "$C" type veth peer name veth1 netns "$B" && ip netns del "$C" || return
	wait_for 5 eval "! ip -n $B link show veth1"
}

# A namespace with a bond that is a member, for a process that is in another one and stays
idle_bond() {
	hosts_up 9000
	if make_bond >"$TMP/out" 2>&1; then
		ip -n $A addr replace $IP_A/24 dev veth0
		link_add $A $DEV_A
		idle $DEV_A $IP_A -g $GROUP4 -g $GROUP6
		has_joined $A t0
		result $? "a bond in a namespace that will end is a member"
		goes "the namespace of a bond goes" namespaces_end
		wait_for 5 eval "! rdma link show | grep -qw $DEV_A/1"
		result $? "and the device with it"
		idler_end
	else
		ktap_skip "the namespace of a bond goes" "no bond in this kernel"
	fi
	three_down
}

# make_vlan NAMESPACE NUMBER
make_vlan() {
	ip -n "$1" link add t0 link veth0 type vlan id 7 || return
	in_ns "$1" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/t0/accept_dad' 2>/dev/null
	ip -n "$1" link set t0 up
	ip -n "$1" addr add "10.99.0.$2/24" dev t0
	ip -n "$1" addr add "fd99::$2/64" dev t0 nodad
}

# What it has sent to lies behind a VLAN. A route that it has found must not keep that.
idle_route() {
	local prefix
	hosts_up 9000
	link_add $A $DEV_A
	make_vlan $B 2
	for prefix in fd99:: 10.99.0.; do
		if ! make_vlan $A 1; then
			ktap_skip "a VLAN that goes, ${prefix}2" "no VLANs in this kernel"
			continue
		fi
		wait_for 5 gid_index $A $DEV_A ${prefix}1
		idle $DEV_A ${prefix}1 -p ${prefix}2
		goes "the VLAN goes, ${prefix}2" ip -n $A link del t0
		idler_end
	done
}

driver_load
if [ "$DRIVER" = sroce ]; then
	idle_member
	idle_bond
	idle_route
	tap
else
	ktap_skip "netdevs that go, or become others" "rdma_rxe joins no group on its netdev"
fi
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
[ "$DRIVER" != sroce ] || vrf
devices_up 9000
mckey_case
ktap_end
