# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Two hosts in the first network namespace, for drivers that know no other one (rdma_rxe before Linux 7, the kernel's NVMe
# target): policy routing sends everything between their addresses over a veth. Sourced, never run.

# one_namespace_pair NET MTU A B : netdev A with 10.NET.0.1, B with 10.NET.0.2
one_namespace_pair() {
	local net=$1 mtu=$2 one=$3 two=$4 a=10.$1.0.1 b=10.$1.0.2 d v
	ip link add "$one" mtu "$mtu" type veth peer name "$two" mtu "$mtu" || return
	for d in "$one" "$two"; do
		v=/proc/sys/net/ipv4/conf/$d
		echo 1 >"$v/accept_local"
		echo 0 >"$v/rp_filter"
		echo 1 >"$v/arp_ignore"
		echo 2 >"$v/arp_announce"
		echo 1 >/proc/sys/net/ipv6/conf/"$d"/disable_ipv6
		ip link set "$d" up
		ip rule add pref 1 iif "$d" lookup local
	done
	ip addr add "$a"/24 dev "$one" && ip addr add "$b"/24 dev "$two" || return
	ip route add "$b" dev "$one" src "$a" table "$net"
	ip route add "$a" dev "$two" src "$b" table "$net"
	ip rule add pref 2 to "$b" lookup "$net"
	ip rule add pref 2 to "$a" from "$b" lookup "$net"
}

# one_namespace_pair_del A B
one_namespace_pair_del() {
	ip rule del pref 1 iif "$1" && ip rule del pref 1 iif "$2"
	while ip rule del pref 2 2>/dev/null; do :; done
	ip link del "$1"
}

# one_namespace_routes : after all pairs are there; an address of this host is looked for in their tables before
one_namespace_routes() {
	echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	ip rule add pref 3 lookup local && ip rule del pref 0
}
