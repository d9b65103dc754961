#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# card.sh : a device on a netdev that has a device of its own below, as every real one has: "device" in sysfs,
# names, and the card that is pulled out while it is used.
#
# CARD=NETDEV   a network card of this machine that nobody needs. Its configuration is lost.
. "$(dirname "$0")/lib.sh"

if [ -z "${CARD:-}" ]; then
	ktap_skip "card" "no CARD was named"
	ktap_end
fi
card=$(readlink -f "/sys/class/net/$CARD/device") && [ -d "$card" ] || bail "$CARD is no card"
# what can be pulled out: the netdev's parent, or a bus device above it
slot=$card
until [ -w "$slot/remove" ] || [ "$slot" = / ]; do slot=$(dirname "$slot"); done

finish() {
	kill "${watch:-}" "${traffic[@]}" 2>/dev/null
	rdma link del "$DEV_A" 2>/dev/null
	rm -rf "$TMP"
}
traffic=()

# Everything is in the first namespace: hosts_up's do not know cards.
in_ns() {
	[ "$1" != - ] || { "${@:2}"; return; }
	ip netns exec "$@"
}

card_up() {
	ip link set "$CARD" up mtu 9000 && ip addr replace $IP_A/24 dev "$CARD" &&
		ip addr replace $IP6_A/64 dev "$CARD" nodad &&
		limit 20 rdma link add $DEV_A type "$DRIVER" netdev "$CARD"
}
has_gid() { gid_index - $DEV_A $IP_A; }
gone() { ! rdma link show | grep -q "link $1/"; }

driver_load
modprobe -aq "$(driver_module)"
card_up && wait_for 20 has_gid || bail "no device on $CARD"

[ "$(readlink -f /sys/class/infiniband/$DEV_A/device)" = "$card" ]
result $? "\"device\" is the card"
[ "$(ls /sys/class/infiniband/$DEV_A/device/net)" = "$CARD" ]
result $? "\"device/net\" is the netdev"
for uverbs in "$card"/infiniband_verbs/uverbs*; do
	grep -qsx $DEV_A "$uverbs/ibdev"
done
result $? "the card has the file of the verbs, too"
[ "$(cat /sys/class/infiniband/$DEV_A/device/numa_node 2>/dev/null)" = "$(cat "$card/numa_node" 2>/dev/null)" ]
result $? "the NUMA node is the card's"

# What udev's rule runs. Before 6.11 the kernel does not say who has chosen the name.
rename=/usr/lib/udev/rdma_rename
if [ -x $rename ] && rdma -d dev show $DEV_A >/dev/null && [ "$(printf '%s\n' 6.11 "$(uname -r)" | sort -V | head -n 1)" = 6.11 ]; then
	$rename $DEV_A NAME_FALLBACK >"$TMP/out" 2>&1
	notes 2 <"$TMP/out"
	rdma link show | grep -q "link $DEV_A/"
	result $? "udev leaves the name that was given"
else
	ktap_skip "udev leaves the name that was given" "no rdma_rename, or a kernel that does not know who gave it"
fi

suite=/usr/share/doc/rdma-core/tests
if [ -e $suite/run_tests.py ] && python3 -c 'import pyverbs' 2>/dev/null; then
	cp -r $suite "$TMP/tests"
	gunzip -q "$TMP"/tests/*.gz 2>/dev/null
	PYVERBS_RUN=$(grep -h rdmacm "$SELF/pyverbs_expected" | tr '\n' ' ') limit 300 \
		python3 "$SELF/pyverbs_run.py" "$TMP/tests" --dev $DEV_A --gid "$(has_gid)" >"$TMP/results" 2>"$TMP/out"
	while read -r word name reason; do
		case $word in
		pass) ktap_pass "${name%:}" ;;
		fail | skip) ktap_fail "${name%:}: $reason" ;;
		esac
	done <"$TMP/results"
	grep -q '^pass' "$TMP/results" || { notes <"$TMP/out"; ktap_fail "rdma-core's tests of rdma_cm"; }
else
	ktap_skip "rdma-core's tests of rdma_cm" "no pyverbs"
fi

# --- the card goes ---------------------------------------------------------------------------------------------

# pull TEXT HOW... : while it is used
pull() {
	local name=$1
	shift
	: >"$TMP/asyncwatch"
	stdbuf -oL ibv_asyncwatch -d $DEV_A >"$TMP/asyncwatch" 2>&1 &
	watch=$!
	ib_write_bw -F -d $DEV_A -x "$(has_gid)" -s 65536 -D 60 >"$TMP/server" 2>&1 &
	traffic=($!)
	wait_for 10 grep -qi ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6
	ib_write_bw -F -d $DEV_A -x "$(has_gid)" -s 65536 -D 60 localhost >"$TMP/client" 2>&1 &
	traffic+=($!)
	wait_for 10 grep -q 'async event FD' "$TMP/asyncwatch"
	sleep 1
	kill -0 "${traffic[@]}"
	result $? "$name: there is traffic"
	limit 30 "$@"
	result $? "$name: it goes at once"
	gone $DEV_A && [ ! -e /sys/class/infiniband/$DEV_A ]
	result $? "$name: the device went with it"
	wait_for 10 grep -q IBV_EVENT_DEVICE_FATAL "$TMP/asyncwatch"
	result $? "$name: who had it open was told"
	# with the files still open: the card's sysfs folder is gone already
	kill "${traffic[@]}" $watch 2>/dev/null
	wait "${traffic[@]}" $watch 2>/dev/null
}

back() { [ "$(readlink -f "/sys/class/net/$CARD/device" 2>/dev/null)" = "$card" ]; }
again() {
	wait_for 20 back && card_up && wait_for 20 has_gid
	result $? "$1: it comes back, and a new device"
}

driver=$(basename "$(readlink -f "$card/driver")") bus=$(readlink -f "$card/subsystem")
pull "the driver is unbound" sh -c "echo ${card##*/} >$bus/drivers/$driver/unbind"
echo "${card##*/}" >"$bus/drivers/$driver/bind"
again "the driver is unbound"
if [ "$slot" != / ] && [ -w /sys/bus/pci/rescan ]; then
	pull "the card is pulled out" sh -c "echo 1 >$slot/remove"
	echo 1 >/sys/bus/pci/rescan
	# the bus may number it anew
	back() { card=$(readlink -f "/sys/class/net/$CARD/device") && [ -d "$card" ]; }
	again "the card is pulled out"
	[ "$(readlink -f /sys/class/infiniband/$DEV_A/device)" = "$card" ]
	result $? "the card is pulled out: the new device has the new card"
else
	ktap_skip "the card is pulled out" "it cannot be"
fi

# Another namespace: the card stays below it
ip netns add $A && ip link set "$CARD" netns $A
[ "$(readlink -f /sys/class/infiniband/$DEV_A/device)" = "$card" ]
result $? "the netdev moves to another namespace: \"device\" is the card"
check "the device goes" 20 rdma link del $DEV_A
ip netns del $A
[ ! -e "$card/infiniband" ]
result $? "nothing is left of it below the card"
driver_unload
result $? "the module can be removed"
ktap_end
