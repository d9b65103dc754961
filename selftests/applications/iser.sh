#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# iSER with both ends in user space: disks of tgt's (Linux SCSI target framework) on one host, used through libiscsi by its
# own tools and by QEMU's. Every byte is compared. (In requests of 256 KiB: tgt 1.0.85 ends the
# connection at one of 2 MiB, which "qemu-img convert" sends.)
. "$(dirname "$0")/lib.sh"
needs "iSER" tgtd tgtadm iscsi-inq iscsi-readcapacity16 iscsi-perf qemu-img qemu-io
TARGET=iqn.2026-11.example:disks INITIATOR=iqn.2026-11.example:host-b
MIB=16
[ "$SET" = full ] && MIB=256

# admin OPTION... : tgt's administration, of the daemon on host A
admin() { on_a tgtadm --lld iser "$@" >"$TMP/tgtadm" 2>&1; }
serves() { admin --mode target --op show; }

# set_up : a target with a disk, which is a file, for the other host. (tgt wants to know both its address and its name.)
set_up() {
	truncate -s ${MIB}M "$TMP/disk"
	admin --mode target --op new --tid 1 --targetname $TARGET &&
		admin --mode logicalunit --op new --tid 1 --lun 1 --backing-store "$TMP/disk" &&
		admin --mode target --op bind --tid 1 --initiator-address $IP_B &&
		admin --mode target --op bind --tid 1 --initiator-name $INITIATOR
}

# what libiscsi's tools call the disk, and what QEMU's do
DISK=iser://$IP_A/$TARGET/1
QDISK="\"driver\":\"iscsi\",\"transport\":\"iser\",\"portal\":\"$IP_A:3260\",\"target\":\"$TARGET\",\"lun\":1"
QDISK="json:{\"driver\":\"raw\",\"file\":{$QDISK,\"initiator-name\":\"$INITIATOR\"}}"

sees() {
	on_b iscsi-inq -i "$INITIATOR" "$DISK" && on_b iscsi-readcapacity16 -i "$INITIATOR" "$DISK" >"$TMP/capacity" || return
	cat "$TMP/capacity"
	grep -q "Total size:$((MIB << 20))" "$TMP/capacity"
}

writes() {
	local piece at=0
	for piece in "$TMP"/piece.*; do
		echo "write -s $piece $at 256k"
		at=$((at + (256 << 10)))
	done | on_b qemu-io "$QDISK" >"$TMP/io" 2>&1
	[ "$(grep -c 'wrote 262144/262144' "$TMP/io")" -eq $((MIB << 2)) ] || { tail -n 5 "$TMP/io" && false; }
}

reads() { on_b qemu-img dd -O raw bs=256k if="$QDISK" of="$TMP/read"; }
reads_at_random() { on_b iscsi-perf -i "$INITIATOR" -m 32 -b 8 -r -t 5 "$DISK" | tr '\r' '\n' | tee "$TMP/perf" && grep -q finished "$TMP/perf"; }

devices_up 9000
mkdir -p /run/tgtd
ip netns exec "$A" tgtd -f >"$TMP/tgtd" 2>&1 &
wait_for 20 serves && set_up
result $? "tgtd: a target with a disk" || notes 10 <"$TMP/tgtadm"
head -c ${MIB}M /dev/urandom >"$TMP/data"
split -b 256k -a 4 "$TMP/data" "$TMP/piece."
application "the disk is seen" 30 200 sees
application "it is written" 60 5000 writes
cmp "$TMP/data" "$TMP/disk"
result $? "what was written is there"
application "it is read" 60 5000 reads
cmp "$TMP/data" "$TMP/read"
result $? "what was read is right"
application "it is read at random, 32 requests at once" 30 20000 reads_at_random
grep -a average "$TMP/perf" | tail -n 1 | notes
ktap_end
