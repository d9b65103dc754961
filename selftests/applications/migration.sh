#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A virtual machine of QEMU's moves from one host to the other by RDMA while it runs, all of its memory registered at once
# or piece by piece; its memory is compared afterwards.
. "$(dirname "$0")/lib.sh"
needs "migration" qemu-system-x86_64 python3
ADDRESS=0x2000000 MIB=32

# machine HOST NAME OPTION... : one without a disk, whose monitor is $TMP/NAME
machine() {
	local host=$1 name=$2
	shift 2
	rm -f "$TMP/$name"
	ip netns exec "$host" qemu-system-x86_64 -accel tcg -M pc -m 128 -nodefaults -display none -vga none \
		-qmp "unix:$TMP/$name,server=on,wait=off" "$@" >"$TMP/$name.log" 2>&1 &
	machines+=($!)
}

there() { [ -S "$TMP/source" ] && [ -S "$TMP/destination" ]; }

# moves PIN : the machine moves from host B to host A
moves() {
	local status machines=()
	machine "$B" source -device "loader,file=$TMP/data,addr=$ADDRESS,force-raw=on"
	machine "$A" destination -incoming defer
	wait_for 60 there && sleep 3 &&
		limit "$LIMIT" python3 "$APPS/migration.py" "$TMP/source" "$TMP/destination" "rdma:$IP_A:4444" "$ADDRESS" "$TMP/data" "$1"
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
