#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Netdevs of every kind below an RDMA device, and what happens to them under traffic: fail-over of a bond, a VLAN
# that goes and comes back; the priority in VLAN tags and the traffic class.
. "$(dirname "$0")/lib.sh"
. "$SELF/traffic.sh"
. "$SELF/marked.sh"

CHECK=$(program icrc_check) && TUNPAIR=$(program tunpair) && FRAMES=$(program frames) || bail "the test programs were not built"

host_nr() { [ "$1" = $A ] && echo 1 || echo 2; }

# top_addresses NAMESPACE [NETDEV] : up, with its addresses
top_addresses() {
	local n netdev=${2:-t0}
	n=$(host_nr "$1")
	in_ns "$1" sh -c "echo 0 >/proc/sys/net/ipv6/conf/$netdev/accept_dad" 2>/dev/null
	ip -n "$1" link set "$netdev" up &&
		ip -n "$1" addr replace "10.99.0.$n/24" dev "$netdev" &&
		ip -n "$1" addr replace "fd99::$n/64" dev "$netdev" nodad
}

sent_bytes() { in_ns "$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }

# talk NAME [OPTIONS] : everything over t0, and it does go through t0
talk() {
	local name=$1 before
	shift
	before=$(sent_bytes $A t0)
	verify "$name: IPv4" $TOP_A $TOP_B "$@"
	verify "$name: IPv6" $TOP6_A $TOP6_B "$@"
	datagrams "$name: datagrams" $TOP_A $TOP_B
	[ "$(($(sent_bytes $A t0) - before))" -gt 100000 ]
	result $? "$name: what host A sent went through it"
}

# both COMMAND [ARGUMENT...] : on both hosts, with their namespace as the first argument
both() { "$1" $A "${@:2}" && "$1" $B "${@:2}"; }

# kind NAME NETDEV_OF_DEVICE COMMAND... : COMMAND makes t0 in the namespace that it is given
kind() {
	local name=$1 netdev=$2
	shift 2
	hosts_up 9000
	if ! both "$@" >"$TMP/out" 2>&1; then
		ktap_skip "$name" "not in this kernel: $(tail -n 1 "$TMP/out")"
		return
	fi
	both top_addresses
	expect "$name: a device on $netdev" link_add $A $DEV_A "$netdev" && expect "$name: one on host B" link_add $B $DEV_B "$netdev" ||
		return
	eventually "$name: the GIDs of t0" has_all_gids $A $DEV_A t0
	wait_gids $B $DEV_B t0
	talk "$name"
	cm "$name: rdma_cm" $TOP_A $TOP_B
}

# --- every kind -------------------------------------------------------------------------------------------

enslave() {
	ip -n "$1" addr flush dev "$2"
	ip -n "$1" link set "$2" down && ip -n "$1" link set "$2" master t0 && ip -n "$1" link set "$2" up
}

make_bridge() { ip -n "$1" link add t0 mtu 9000 type bridge && enslave "$1" veth0; }
make_bond() { ip -n "$1" link add t0 type bond mode active-backup miimon 20 && enslave "$1" veth0 && ip -n "$1" link set t0 mtu 9000; }
make_macvlan() { ip -n "$1" link add t0 mtu 9000 link veth0 type macvlan mode bridge; }
make_ipvlan() { ip -n "$1" link add t0 mtu 9000 link veth0 type ipvlan mode "${2:-l2}"; }
make_vlan() { ip -n "$1" link add t0 link veth0 type vlan id 7; }
make_bridge_on_vlan() {
	ip -n "$1" link add v0 link veth0 type vlan id 8 && ip -n "$1" link set v0 up &&
		ip -n "$1" link add t0 mtu 9000 type bridge && ip -n "$1" link set v0 master t0
}
make_vlan_on_bond() {
	ip -n "$1" link add b0 type bond mode active-backup miimon 20 && ip -n "$1" addr flush dev veth0 &&
		ip -n "$1" link set veth0 down && ip -n "$1" link set veth0 master b0 && ip -n "$1" link set b0 up mtu 9000 &&
		ip -n "$1" link add t0 link b0 type vlan id 9
}
# There is no teamd here, and no other tool sets the mode of a team, without which it sends nothing.
team_mode() {
	in_ns "$1" python3 - "$2" <<-'END'
		import socket, struct, sys
		def attr(kind, data):
		    return struct.pack("HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)
		s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
		def ask(family, cmd, attrs):
		    body = struct.pack("BBH", cmd, 1, 0) + attrs
		    s.send(struct.pack("IHHII", len(body) + 16, family, 1 if family == 16 else 5, 1, 0) + body)
		    answer = s.recv(65536)
		    error = struct.unpack_from("i", answer, 16)[0] if struct.unpack_from("H", answer, 4)[0] == 2 else 0
		    # ESRCH: done, and nobody listens to the news
		    if error not in (0, -3):
		        sys.exit("netlink error %d" % error)
		    return answer
		answer = ask(16, 3, attr(2, b"team\0"))
		at, family = 20, None
		while at + 4 <= len(answer) and family is None:
		    n, kind = struct.unpack_from("HH", answer, at)
		    if kind == 1:
		        family = struct.unpack_from("H", answer, at + 4)[0]
		    at += (n + 3) & ~3
		index = socket.if_nametoindex("t0")
		def option(name, kind, data):
		    one = attr(1, name) + attr(3, struct.pack("B", kind)) + attr(4, data)
		    ask(family, 1, attr(1, struct.pack("I", index)) + attr(0x8002, attr(0x8001, one)))
		if sys.argv[1] == "mode":
		    option(b"mode\0", 5, b"activebackup\0")
		else:
		    option(b"activeport\0", 3, struct.pack("I", socket.if_nametoindex(sys.argv[1])))
	END
}
# Nor does anything but teamd see to the addresses
make_team() {
	ip -n "$1" link add t0 address "$(in_ns "$1" cat /sys/class/net/veth0/address)" type team && team_mode "$1" mode && enslave "$1" veth0 && team_mode "$1" veth0 &&
		ip -n "$1" link set t0 mtu 9000
}

driver_load
kind "bridge" t0 make_bridge
kind "bond" t0 make_bond
[ -n "$SHORT" ] || kind "team" t0 make_team
kind "macvlan" t0 make_macvlan
[ -n "$SHORT" ] || kind "ipvlan" t0 make_ipvlan
[ -n "$SHORT" ] || kind "bridge on a VLAN" t0 make_bridge_on_vlan
# a device below, which has the GIDs of what stands on top of it
kind "VLAN" veth0 make_vlan
[ -n "$SHORT" ] || kind "VLAN on a bond" b0 make_vlan_on_bond
[ -n "$SHORT" ] || kind "macvlan, the device below" veth0 make_macvlan
[ -n "$SHORT" ] || kind "bond, the device below" veth0 make_bond
kind "bridge, the device below" veth0 make_bridge

# What the core gives no GIDs is refused, with a hint
hosts_up 9000
make_vlan $A
limit 20 ip netns exec $A rdma link add $DEV_A type "$DRIVER" netdev t0 >"$TMP/out" 2>&1
status=$?
notes 1 <"$TMP/out"
[ $status -gt 0 ] && [ $status -lt 124 ] && gone $A $DEV_A
result $? "a device on a VLAN is refused"
if [ "$DRIVER" = sroce ]; then
	dmesg | grep 't0: sroce: .*veth0' | tail -n 1 | grep -q .
	result $? "the kernel's log says which netdev to use"
fi

# here NAME DEVICE ADDRESS : a device that leads nowhere but to its own host
here() {
	local direct
	for direct in Y N; do
		param direct $direct || continue
		pair "$1, direct=$direct" 60 "$VERIFY -d $2 -i $3" "$VERIFY -d $2 -i $3 -n $rounds $VERIFY_OPTIONS $3"
		pair "$1, direct=$direct: datagrams" 60 "$VERIFY_UD -d $2 -i $3" "$VERIFY_UD -d $2 -i $3 -n 100 $3"
	done
	param direct Y
}

hosts_up 9000
if ip -n $A link add t0 type dummy; then
	top_addresses $A
	expect "a device on dummy" link_add $A ${DEV_A}t t0
	CLIENT_NS=$A here "dummy" ${DEV_A}t $TOP_A
	CLIENT_NS=$A cm "dummy: rdma_cm" $TOP_A $TOP_A
else
	ktap_skip "dummy" "not in this kernel"
fi
expect "a device on lo" link_add $A ${DEV_A}l lo
CLIENT_NS=$A here "lo" ${DEV_A}l 127.0.0.1
# not everything that comes over lo is for the device of lo
expect "one more device on veth0" link_add $A $DEV_A
CLIENT_NS=$A here "veth0 beside lo" $DEV_A $IP_A
CLIENT_NS=$A cm "veth0 beside lo: rdma_cm" $IP_A $IP_A
ip -n $A addr add 10.99.9.9/32 dev lo
eventually "lo: a new address, a new GID" has_gid $A ${DEV_A}l 10.99.9.9
ip -n $A addr del 10.99.9.9/32 dev lo
eventually "lo: the address removed, the GID removed" lacks_gid $A ${DEV_A}l 10.99.9.9
has_gid $A ${DEV_A}l 127.0.0.1
result $? "lo: the others are still there"
link_del $A ${DEV_A}l
link_del $A ${DEV_A}t
ip -n $A link del t0 2>/dev/null

# VLANs of one device talk to each other on one host as well, and rdma_cm knows which is meant
make_vlan $A && top_addresses $A
wait_gids $A $DEV_A t0
CLIENT_NS=$A here "one VLAN, one host" $DEV_A $TOP_A
CLIENT_NS=$A cm "one VLAN, one host: rdma_cm" $TOP_A $TOP_A

# --- a VRF --------------------------------------------------------------------------------------------------

# The control connections of the test programs know nothing of VRFs
make_vrf() {
	ip -n $A link add blue type vrf table 10 && ip -n $A link set blue up && ip -n $A link set veth0 master blue &&
		ip -n $A addr replace $IP6_A/64 dev veth0 nodad && on_a sysctl -qw net.ipv4.tcp_l3mdev_accept=1 &&
		ip -n $A rule add pref 2000 lookup 10 && ip -n $A -6 rule add pref 2000 lookup 10
}

# vrf_vlan NAMESPACE ID : in the VRF, where there is one
vrf_vlan() {
	ip -n "$1" link add "v$2" link veth0 type vlan id "$2" || return
	in_ns "$1" sh -c "echo 0 >/proc/sys/net/ipv6/conf/v$2/accept_dad" 2>/dev/null
	[ "$1" != "$A" ] || ip -n "$A" link set "v$2" master blue
	ip -n "$1" link set "v$2" up && ip -n "$1" addr add "10.9$2.0.$(host_nr "$1")/24" dev "v$2" &&
		ip -n "$1" addr add "fd9$2::$(host_nr "$1")/64" dev "v$2" nodad
}

# vrf_crowd : six hundred netdevs in the VRF, each with an address
vrf_crowd() {
	local i
	for ((i = 0; i < 600; i++)); do
		echo "link add crowd$i type bridge"
		echo "link set crowd$i master blue up"
		echo "addr add fd9c::$i/128 dev crowd$i nodad"
	done >"$TMP/crowd"
	ip -n "$A" -batch "$TMP/crowd"
}

mac_of() { in_ns "$1" cat /sys/class/net/veth0/address; }
link_local() { ip -n "$1" -o addr show dev "${2:-veth0}" scope link | awk '{ sub("/.*", "", $4); print $4 }'; }

# vrf_heard NAME MESSAGES ADDRESS PEER SOURCE NETDEV : so many of 16 that come from SOURCE, through host B's NETDEV, to a queue pair
# of host A's ADDRESS that is connected to PEER; datagrams all
vrf_heard() {
	local pid ud uc
	: >"$TMP/stray"
	ip netns exec $A "$STRAY" -d $DEV_A -i "$3" -p "$4" >"$TMP/stray" 2>&1 &
	pid=$!
	wait_for 5 grep -q '^[0-9]' "$TMP/stray"
	read -r ud uc <"$TMP/stray"
	in_ns $B "$FRAMES" -2 -n 16 -i "$6" -m "$(mac_of $A)" -a "$3" -S "$5" -q "$ud" >"$TMP/out" 2>&1 &&
		in_ns $B "$FRAMES" -2 -n 16 -i "$6" -m "$(mac_of $A)" -a "$3" -S "$5" -q "$uc" -c >>"$TMP/out" 2>&1 || notes <"$TMP/out"
	sleep 0.3
	kill $pid
	wait $pid
	note "$(tail -n 1 "$TMP/stray"), of 16 datagrams and 16 messages"
	[ "$(tail -n 1 "$TMP/stray")" = "got 16 $2" ]
	result $? "VRF, heard: $1"
}

hosts_up 9000
if make_vrf >"$TMP/out" 2>&1; then
	both vrf_vlan 5 && both vrf_vlan 6
	expect "VRF: a device" link_add $A $DEV_A && expect "VRF: one on host B" link_add $B $DEV_B
	for netdev in v5 v6; do wait_gids $A $DEV_A $netdev && wait_gids $B $DEV_B $netdev; done
	for prefix in 10.98.0. fd98:: 10.96.0. fd96::; do
		verify "VRF, $prefix" ${prefix}1 ${prefix}2
		datagrams "VRF, $prefix: datagrams" ${prefix}1 ${prefix}2
		cm "VRF, $prefix: rdma_cm" ${prefix}1 ${prefix}2
	done
	vrf_heard "from the peer" 16 $IP6_A $IP6_B $IP6_B veth0
	vrf_heard "connected within this host: from its address, but from another host" 0 $IP6_A $IP6_A $IP6_A veth0
	vrf_heard "from the peer, link-local" 16 "$(link_local $A)" "$(link_local $B)" "$(link_local $B)" veth0
	vrf_heard "from its address, but on a VLAN in the same VRF" 0 "$(link_local $A)" "$(link_local $B)" "$(link_local $B)" v5
	pair "VRF: rdma_cm, link-local" 40 "rping -s -a $(link_local $A)%veth0 -C 10 -V" "rping -c -a $(link_local $A)%veth0 -C 10 -V"
	for ip in $IP_A $IP6_A; do
		CLIENT_NS=$A here "VRF, within the host, $ip" $DEV_A "$ip"
		CLIENT_NS=$A cm "VRF, within the host, $ip: rdma_cm" "$ip" "$ip"
	done
	# QP 1 is not direct, so what is for an address of the last netdev comes from the VRF
	expect "VRF: six hundred other netdevs" vrf_crowd
	both vrf_vlan 7
	wait_gids $A $DEV_A v7
	CLIENT_NS=$A here "VRF of many netdevs, within the host" $DEV_A fd97::1
	CLIENT_NS=$A cm "VRF of many netdevs, within the host: rdma_cm" fd97::1 fd97::1
else
	ktap_skip "VRF" "not in this kernel: $(tail -n 1 "$TMP/out")"
fi

hosts_up 9000
# what makes /dev/net/tun where there is no udev
modprobe -q tun
"$TUNPAIR" t0 $A $B 2>"$TMP/out" &
tunpair=$!
if wait_for 3 ip -n $B link show t0; then
	# the address comes before the device on host A, and after it on host B
	top_addresses $A
	ip -n $B link set t0 up
	expect "tun: a device without a MAC address" link_add $A $DEV_A t0
	expect "tun: one on host B" link_add $B $DEV_B t0
	top_addresses $B
	eventually "tun: GIDs of addresses that came later" has_all_gids $B $DEV_B t0
	guid=$(in_ns $A cat /sys/class/infiniband/$DEV_A/node_guid)
	[ "$guid" != 0000:0000:0000:0000 ] && [ "$guid" != 0200:00ff:fe00:0000 ]
	result $? "tun: a GUID of its own ($guid)"
	# each packet goes through a process, and its queue is short
	talk "tun" -T 18 -q 2 -m 65536
else
	ktap_skip "tun" "$(tail -n 1 "$TMP/out")"
fi
hosts_down
kill $tunpair 2>/dev/null
wait $tunpair 2>/dev/null

# --- what is in the packets -------------------------------------------------------------------------------

hosts_up 9000
PINNED=$ONE_CPU
workers_on_one_cpu
if both make_vlan; then
	both top_addresses
	link_add $A $DEV_A && link_add $B $DEV_B && wait_gids $A $DEV_A t0 && wait_gids $B $DEV_B t0
	# No marks and notifications of the driver's own, which congestion looks at
	echo 0 >"/sys/class/infiniband/$DEV_A/ports/1/cc_params/rp_enable"
	echo 0 >"/sys/class/infiniband/$DEV_B/ports/1/cc_params/rp_enable"
	marked "no VLAN" "-V 0 -P 0 -C 0" verify "no VLAN, nothing given" $IP_A $IP_B
	# the ECN bits of a traffic class are not for applications
	marked "no VLAN, traffic class" "-V 0 -C 0x68" verify "no VLAN, traffic class" $IP_A $IP_B -C 0x6a
	marked "VLAN" "-V 7 -P 0 -C 0" verify "VLAN, nothing given" $TOP_A $TOP_B
	for ns in $A $B; do
		ip -n "$ns" link set t0 type vlan egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7
	done
	marked "service level" "-V 7 -P 5 -C 0" verify "service level 5" $TOP_A $TOP_B -L 5
	marked "both" "-V 7 -P 6 -C 0x68" verify "service level 6, traffic class" $TOP_A $TOP_B -L 6 -C 0x6a
	marked "both, IPv6" "-V 7 -P 6 -C 0x68" verify "service level 6, traffic class, IPv6" $TOP6_A $TOP6_B -L 6 -C 0x6a
	ONE_WAY=1 marked "datagrams" "-V 7 -P 3 -C 0x28" datagrams "datagrams, service level 3, traffic class" $TOP_A $TOP_B -L 3 -C 0x29
	# what a completion has where there was no priority, and so the address of the answer
	ONE_WAY=1 marked "no service level" "-V 7 -P 0 -C 0" datagrams "datagrams, service level of a completion without" $TOP_A $TOP_B -L 10
	# as of a socket with this TOS
	marked "traffic class alone" "-V 7 -P 2 -C 0x08" verify "traffic class alone" $TOP_A $TOP_B -C 0x08
	for ns in $A $B; do
		ip -n "$ns" link set t0 type vlan egress-qos-map 4:0 6:4
	done
	marked "a map that crosses" "-V 7 -P 4" verify "service level 4" $TOP_A $TOP_B -L 4
	# The receiver itself must notice
	: >"$TMP/capture.$B"
	ip netns exec $B "$CHECK" -i veth0 -t 60 -V 7 -P 1 -C 1 >"$TMP/capture.$B" 2>&1 &
	checker=$!
	wait_for 5 grep -q capturing "$TMP/capture.$B"
	verify "unmarked" $TOP_A $TOP_B
	kill $checker
	wait $checker
	[ $? -eq 1 ] && grep -q 'WRONG packet.*traffic class 00' "$TMP/capture.$B" && grep -q 'VLAN 7 priority 0' "$TMP/capture.$B"
	result $? "the capture notices other marks"
else
	ktap_skip "VLAN tags" "no VLANs in this kernel"
fi
PINNED=
workers_anywhere

# --- under traffic ------------------------------------------------------------------------------------------

# A second cable between the hosts
second_cable() {
	ip link add veth1 netns $A mtu 9000 type veth peer name veth1 netns $B mtu 9000 &&
		enslave $A veth1 && enslave $B veth1
}
active_slave() { in_ns "$1" cat /sys/class/net/t0/bonding/active_slave; }
is_active() { [ "$(active_slave $A)" = "$1" ] && [ "$(active_slave $B)" = "$1" ]; }

# fail_over NETDEV : away from it, and it comes back
fail_over() {
	local other=veth1
	[ "$1" = veth0 ] || other=veth0
	ip -n $A link set "$1" down
	eventually "fail-over from $1 to $other" is_active $other
	sleep 0.7
	ip -n $A link set "$1" up
	wait_for 5 in_ns $A grep -q 1 "/sys/class/net/$1/carrier"
	sleep 0.3
}

hosts_up 9000
if both make_bond 2>/dev/null && second_cable; then
	both top_addresses
	link_add $A $DEV_A t0 && link_add $B $DEV_B t0
	number=$(dev_number $A $DEV_A)
	traffic_start 60 $TOP_A $TOP_B
	for netdev in "$(active_slave $A)" veth1 veth0; do
		is_active "$netdev" && fail_over "$netdev"
	done
	kill -0 "${traffic[1]}" 2>/dev/null
	result $? "bond: there was traffic all the time"
	traffic_end "bond: connections outlive the fail-overs" 0
	[ "$(dev_number $A $DEV_A)" = "$number" ]
	result $? "bond: it is still the same device"
	wait_gids $A $DEV_A t0
	result $? "bond: it has its GIDs"
	talk "bond, after that"
	cm "bond, after that: rdma_cm" $TOP_A $TOP_B

	# The same with a device on each slave: the core moves the bond's GIDs to that of the active one
	link_del $A $DEV_A
	link_del $B $DEV_B
	is_active veth0 || fail_over veth1
	link_add $A $DEV_A veth0 && link_add $A ${DEV_A}1 veth1 && link_add $B $DEV_B veth0 && link_add $B ${DEV_B}1 veth1
	wait_gids $A $DEV_A t0 && wait_gids $B $DEV_B t0
	lacks_gid $A ${DEV_A}1 $TOP_A
	result $? "slaves: the GID is with the device of the active one"
	cm "slaves: rdma_cm" $TOP_A $TOP_B
	traffic_start 60 $TOP_A $TOP_B
	fail_over veth0
	eventually "slaves: the GID moves" eval "has_gid $A ${DEV_A}1 $TOP_A && lacks_gid $A $DEV_A $TOP_A && has_gid $B ${DEV_B}1 $TOP_B"
	cm "slaves, after a fail-over: rdma_cm" $TOP_A $TOP_B
	traffic_end "slaves: connections of the first one go on" 0
	fail_over veth1
	ll_a=$(link_local $A t0) ll_b=$(link_local $B t0)
	eventually "slaves: the GIDs move back" eval "has_gid $A $DEV_A $TOP_A && has_gid $A $DEV_A $ll_a && has_gid $B $DEV_B $ll_b"
	traffic_start 60 "$ll_a" "$ll_b" $TOP_A
	fail_over veth0
	eventually "slaves: the GID moves again" has_gid $A ${DEV_A}1 "$ll_a"
	traffic_end "slaves: connections of link-local addresses go on" 0
	link_del $A ${DEV_A}1
	link_del $B ${DEV_B}1
else
	ktap_skip "bond fail-over" "no bonding in this kernel"
fi

hosts_up 9000
if both make_vlan; then
	both top_addresses
	link_add $A $DEV_A && link_add $B $DEV_B && wait_gids $A $DEV_A t0 && wait_gids $B $DEV_B t0
	number=$(dev_number $A $DEV_A)
	for way in "VLAN deleted" "VLAN down and up" "VLAN renamed"; do
		traffic_start 60 $TOP_A $TOP_B
		sleep 1
		case $way in
		*deleted)
			expect "$way under traffic" ip -n $A link del t0
			eventually "$way: its GIDs are gone" lacks_gid $A $DEV_A $TOP_A
			verify "$way: the device below works" $IP_A $IP_B
			make_vlan $A
			top_addresses $A
			;;
		*up)
			ip -n $A link set t0 down
			sleep 0.5
			top_addresses $A
			;;
		*renamed)
			ip -n $A link set t0 down
			ip -n $A link set t0 name t1
			ip -n $A link set t1 name t0
			top_addresses $A
			;;
		esac
		eventually "$way: it has its GIDs again" has_all_gids $A $DEV_A t0
		# a connection that lost its netdev may end (3), but neither hang (4) nor see wrong data (1)
		traffic_end "$way: connections end cleanly or go on" 0 3
		verify "$way: new connections work" $TOP_A $TOP_B
	done
	[ "$(dev_number $A $DEV_A)" = "$number" ]
	result $? "VLAN moves: it is still the same device"
else
	ktap_skip "VLAN moves" "no VLANs in this kernel"
fi
ktap_end
