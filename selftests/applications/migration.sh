#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A virtual machine of QEMU's moves from one host to the other by RDMA while it runs, all of its memory registered at once
# or piece by piece; its memory is compared afterwards.
. "$(dirname "$0")/lib.sh"
needs "migration" qemu-system-x86_64 python3
ADDRESS=0x2000000 MIB=32 MONITOR=4445

# machine HOST IP NAME OPTION... : one without a disk, whose monitor listens on that address of the host
machine() {
	local host=$1 ip=$2 name=$3
	shift 3
	ip netns exec "$host" qemu-system-x86_64 -accel tcg -M pc -m 128 -nodefaults -display none -vga none \
		-qmp "tcp:$ip:$MONITOR,server=on,wait=off" "$@" >"$TMP/$name.log" 2>&1 &
	machines+=($!)
}

has_monitor() { in_ns "$1" grep -q "$(printf ': [0-9A-F]*:%04X 0*:0000 0A' "$MONITOR")" /proc/net/tcp; }
there() { has_monitor "$A" && has_monitor "$B"; }

# moves PIN : the machine moves from host B to host A
moves() {
	local status machines=()
	machine "$B" "$IP_B" source -device "loader,file=$TMP/data,addr=$ADDRESS,force-raw=on"
	machine "$A" "$IP_A" destination -incoming defer
	wait_for 60 there && sleep 3 &&
		limit "$LIMIT" in_ns "$A" python3 "$APPS/migration.py" "$IP_B" "$IP_A" "$MONITOR" "rdma:$IP_A:4444" \
			"$ADDRESS" "$TMP/data" "$1" "$SLOW"
	status=$?
	cat "$TMP/source.log" "$TMP/destination.log"
	kill "${machines[@]}" && wait "${machines[@]}"
	return "$status"
}

devices_up 9000
head -c ${MIB}M /dev/urandom >"$TMP/data"
application "a machine moves, its memory registered at once" 150 1000 moves on
[ -n "$SHORT" ] || application "a machine moves, its memory registered piece by piece" 150 1000 moves off
ktap_end
