# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# RDMA devices that are each in one namespace only, and move from there to another one. Sourced after lib.sh, which makes
# devices be for everybody again where a test ends in the middle.

# device_in NAMESPACE DEVICE : is it seen there?
device_in() { in_ns "$1" rdma link show "$2/1" >/dev/null 2>&1; }

# exclusive_add NAMESPACE DEVICE NETDEV : kernels before 6.17 have every new device in the first namespace
exclusive_add() {
	in_ns "$1" rdma link add "$2" type "$DRIVER" netdev "$3" || return
	device_in "$1" "$2" || rdma dev set "$2" netns "$1" || return
	wait_gids "$1" "$2" "$3"
}

# exclusive_up : two hosts, each with its device for itself; fails where there are other namespaces, for then the mode cannot be
# chosen. exclusive_down : no hosts, and devices are for everybody again
exclusive_up() {
	driver_load
	hosts_down
	wait_for 15 rdma system set netns exclusive || return
	hosts_up 9000
	short_orphans "$A" "$B"
	wait_for 20 exclusive_add "$A" "$DEV_A" veth0 && wait_for 20 exclusive_add "$B" "$DEV_B" veth0 || bail "no devices in exclusive mode"
}
exclusive_down() {
	hosts_down
	wait_for 60 rdma system set netns shared || bail "devices cannot be for everybody again: there are other namespaces"
}

# short_orphans NAMESPACE... : a TCP connection that lost its netdev, or its peer, would keep the namespace for minutes
short_orphans() {
	local ns
	for ns; do
		in_ns "$ns" sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries'
	done
}

# moves NAME : whoever waits for what, $DEV_A, which is host A's alone (exclusive_up), goes to another namespace when an
# administrator says so, away from all who use it, and comes back
moves() {
	local name=$1
	host_ns "$MOVED" || bail "cannot make a network namespace"
	check "$name: rdma dev set netns, and it goes" 20 returns 20 ip netns exec "$A" rdma dev set "$DEV_A" netns "$MOVED"
	device_in "$MOVED" "$DEV_A" && ! device_in "$A" "$DEV_A"
	result $? "$name: the device is in the other namespace, and only there"
	check "$name: rdma dev set netns, and it comes back" 20 returns 20 ip netns exec "$MOVED" rdma dev set "$DEV_A" netns "$A"
	device_in "$A" "$DEV_A" && ! device_in "$MOVED" "$DEV_A"
	result $? "$name: the device is where it was, and only there"
	ip netns del "$MOVED"
}
