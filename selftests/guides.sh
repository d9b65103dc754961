#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The guides: every command that stands in a fence of README.md or Documentation is run, in the guide's order, and has to
# do and print what the guide says (guides_run.py has the rules, and counts as skipped what cannot be run). GUIDES= names
# some of them.
#
# A guide has two hosts, "host1" and "host2", whose "eth0" are ports of the bridge of a third namespace, "switch". Each
# host has only its own RDMA device, as machines have: the mode is exclusive. In containers.md host1 is the machine itself,
# because namespaces and the mode are what it is about, and so are "target" and "initiator" of storage.md, because many of
# the kernel's own users of RDMA are in the first namespace only; so these two run in a guest of the lab only.
. "$(dirname "$0")/lib.sh"
. "$SELF/exclusive.sh"

DOC=$SELF/../Documentation
S=srtest_s
HOSTS="host1=$A host2=$B switch=$S"
ALL="README quickstart install networks congestion counters tuning troubleshooting tracing debugging compatibility from-rxe applications
watching storage containers"
# Who reads these builds and tests the driver itself: what they say is done by tools/test, or for a tree of one's own
DEVELOPERS="CONTRIBUTING Documentation/architecture Documentation/lab Documentation/testing Documentation/upstream/README"
: "${GUIDES:=$ALL}"

[ "$DRIVER" = sroce ] || bail "the guides are about sroce"
command -v python3 >/dev/null || bail "no python3"
export PYTHONDONTWRITEBYTECODE=1

# --- the module, where modprobe looks ----------------------------------------------------------------------

# installed COMMAND... : run it where modprobe and modinfo find the module
# shellcheck disable=SC2016 # for the inner shell
installed() {
	if [ -z "${KO:-}" ]; then
		"$@"
		return
	fi
	mkdir -p "$TMP/changes"
	unshare --mount bash -c '
		changes=$0 ko=$1 modules=/lib/modules/$(uname -r)
		shift
		mount -t tmpfs tmpfs "$changes" && mkdir "$changes/upper" "$changes/work" &&
			mount -t overlay -o "lowerdir=$modules,upperdir=$changes/upper,workdir=$changes/work" overlay "$modules" &&
			install -D "$ko" "$modules/extra/sroce.ko" && depmod && exec "$@"' "$TMP/changes" "$KO" "$@"
}

# --- hosts -----------------------------------------------------------------------------------------------------

# plug NAMESPACE PORT N : its eth0 at a port of the switch, with the addresses of host N
plug() {
	ip link add eth0 netns "$1" numtxqueues 4 numrxqueues 4 type veth peer name "$2" netns $S numrxqueues 4 || bail "no veth"
	in_ns "$1" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad'
	ip -n "$1" addr add "192.0.2.$3/24" dev eth0
	ip -n "$1" addr add "2001:db8::$3/64" dev eth0 nodad
	ip -n "$1" link set eth0 up
	ip -n $S link set "$2" mtu 9216 master br0 up
}

two_hosts() {
	local ns
	for ns in $A $B $S; do
		host_ns "$ns" || bail "cannot make network namespaces"
	done
	ip -n $S link add br0 type bridge mcast_snooping 0 || bail "no bridge"
	ip -n $S link set br0 mtu 9216 up
	plug $A swp1 1
	plug $B swp2 2
}

one_machine() {
	# podman lays images over each other, which it refuses where the lab has laid something itself
	! command -v podman >/dev/null || { mkdir -p /var/lib/containers && mount -t tmpfs tmpfs /var/lib/containers; }
	ip link add eth0 type dummy && ip addr add 192.0.2.1/24 dev eth0 && ip link set eth0 up
}

none_left() { ! rdma dev show | grep -q .; }
devices_down() {
	local dev
	for dev in $(rdma dev show | sed -n 's/^[0-9]*: \([^:]*\):.*/\1/p'); do
		rdma link del "$dev"
	done
}

# A device goes with its netdev, and that with a namespace
down() {
	local ns
	rmdir /sys/kernel/config/rdma_cm/* 2>/dev/null
	# The guides' own were mounted where nobody is any more
	for ns in $A $B $S c1 c2 old; do
		[ ! -e "/run/netns/$ns" ] || ip netns del "$ns" 2>/dev/null
	done
	[ "${machine:-}" != here ] || { devices_down; ip link del eth0; rm -rf /dev/c1; umount -l /var/lib/containers 2>/dev/null; }
	machine=
	wait_for 20 none_left
	wait_for 20 rdma system set netns shared
}
trap 'down; finish' EXIT

# --- guides ----------------------------------------------------------------------------------------------------

# mode NAME : containers.md changes it, and rdma_rxe has its devices in the first namespace in exclusive mode
mode() {
	case $1 in
	containers | storage | from-rxe) echo shared ;;
	*) echo exclusive ;;
	esac
}

# have_devices NAME : what a guide takes for granted
have_devices() {
	case $1 in
	README | quickstart | install) return ;;
	esac
	driver_load
	case $1 in
	compatibility | from-rxe) return ;;
	esac
	exclusive_add $A sroce0 eth0 && exclusive_add $B sroce9 eth0 || bail "no devices"
}

# guide NAME : run it
guide() {
	local file=$DOC/$1.md hosts=$HOSTS
	[ "$1" != README ] || file=$SELF/../README.md
	! driver_loaded || driver_unload
	case $1 in
	containers) hosts="host1=" machine=here ;;
	storage) hosts="target= initiator=" machine=here ;;
	*)
		two_hosts
		have_devices "$1"
		;;
	esac
	if [ -n "$machine" ]; then
		[ -n "${LAB_TARGET:-}" ] && [ ! -e /sys/class/net/eth0 ] ||
			{ ktap_skip "$1" "it changes the machine itself, which is no guest of the lab"; machine=; return; }
		one_machine
	fi
	# shellcheck disable=SC2086 # words
	program_verdicts "$1" 500 installed python3 "$SELF/guides_run.py" "$file" $hosts
	down
}

# In a page that is no guide nobody would run them
pages() {
	local file name
	for file in "$SELF"/../*.md "$DOC"/*.md "$DOC"/*/*.md; do
		name=${file#"$SELF/../"}
		name=${name%.md}
		[[ " ${ALL//$'\n'/ } $DEVELOPERS " == *" ${name#Documentation/} "* || " $DEVELOPERS " == *" $name "* ]] || echo "$file"
	done
}
mapfile -t others < <(pages)
program_verdicts "pages that are no guides have no commands" 20 python3 "$SELF/guides_run.py" --none "${others[@]}"

hosts_down
machine=
for name in $GUIDES; do
	wait_for 20 rdma system set netns "$(mode "$name")" || bail "there are other network namespaces"
	guide "$name"
done
ktap_end
