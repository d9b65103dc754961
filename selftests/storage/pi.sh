#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Protection information of T10 over iSER and NVMe-oF: blocks are followed by it on the wire, lie apart from it in memory,
# and an error is found by whoever passes the block on. What the target has stored is checked without the kernel.
# The part with NVMe-oF wants scsi_debug: a disk that keeps protection information by itself.
. "$(dirname "$0")/lib.sh"

. "$SELF/storage/iser_lib.sh"
# shellcheck disable=SC2034 # for need_both
target_modules="ib_isert iscsi_target_mod target_core_mod target_core_file"
need_both
need_program python3

pi() { python3 "$SELF/storage/pi.py" "$@"; }

found() { dmesg | grep -c "PI error found type $1"; }

# --- iSER -----------------------------------------------------------------------------------------

DISK=$TMP/pi.disk
CORE=$T/core/fileio_0/d0
BLOCK=512

# A file that has protection information in another one beside it. Whether they fit is not for the target's own code to
# see, so that it is seen by who sends them.
target_up() {
	mkdir -p "$CORE" && echo "fd_dev_name=$DISK,fd_dev_size=$((128 << 20))" >"$CORE/control" &&
		echo 1 >"$CORE/enable" && echo "$BLOCK" >"$CORE/attrib/block_size" &&
		echo "$1" >"$CORE/attrib/pi_prot_type" && echo 1 >"$CORE/attrib/pi_prot_format" &&
		echo 0 >"$CORE/attrib/pi_prot_verify" || return
	mkdir -p "$TPG/lun/lun_0" && ln -s "$CORE" "$TPG/lun/lun_0/d0" || return
	echo 0 >"$TPG/attrib/authentication"
	echo 1 >"$TPG/attrib/generate_node_acls"
	echo 1 >"$TPG/attrib/cache_dynamic_acls"
	echo 0 >"$TPG/attrib/demo_mode_write_protect"
	echo 1 >"$TPG/attrib/t10_pi" || return
	portal_up && echo 1 >"$TPG/enable"
}

target_down() {
	echo 0 >"$TPG/enable"
	portal_down
	rm "$TPG/lun/lun_0/d0"
	rmdir "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$T/iscsi" "$CORE" "${CORE%/*}"
	rm -f "$DISK" "$DISK.protection"
}

with_pi() { modprobe -r ib_iser && modprobe ib_iser pi_enable=1; }

integrity() { echo "/sys/block/${d##*/}/integrity"; }
profile() { cat "$(integrity)/format"; }
stored() { pi check "$DISK" "$DISK.protection" "$BLOCK"; }
read_block() { dd if="$d" of=/dev/null bs=4096 skip="$1" count=1 iflag=direct status=none; }
unreadable() { ! read_block "$1" 2>/dev/null; }

# error_found NAME TYPE FILE OFFSET : a byte that is wrong there is found when the block at 1 MiB is read, and no other
error_found() {
	local before
	before=$(found "$2")
	pi flip "$3" "$4"
	check "$1: the block before it can be read" 30 read_block 255
	unreadable 256
	result $? "$1: reading it is an error"
	[ "$(found "$2")" -gt "$before" ]
	result $? "$1: with its name"
	dmesg | grep "PI error found type $2" | tail -n 1 | notes
	pi flip "$3" "$4"
	check "$1: it can be read when it is right again" 30 read_block 256
}

errors_found() {
	check "$1: data is written" 60 put_data "$d"
	check "$1: and stored with the right protection information" 120 stored
	error_found "$1: data" 0 "$DISK" $(((1 << 20) + 5))
	error_found "$1: guard" 0 "$DISK.protection" $(((8 << 20) / BLOCK + 1))
	error_found "$1: reference tag" 1 "$DISK.protection" $(((8 << 20) / BLOCK + 7))
	check "$1: the data is what it was" 60 same_data "$d"
}

# The initiator makes none and looks at none: it is put in, and taken out, on the way
no_pi_in_memory() {
	echo 0 >"$(integrity)/write_generate" && echo 0 >"$(integrity)/read_verify"
}

# Page by page, each with a buffer of its own for its tuples, which are then in one request
buffered_data() { dd if="$TMP/data" of="$d" bs=1M conv=fsync status=none && echo 1 >/proc/sys/vm/drop_caches; }
# As many as there may be, that come at once and become one
merged() {
	fio_verify "$d" --rw=write --bs=4k --size=16m --iodepth=128 --iodepth_batch_submit=128 --iodepth_batch_complete_min=128
}
merges() { awk '{ print $2 + $6 }' "/sys/block/${d##*/}/stat"; }

small_io() {
	local before
	check "mkfs" 60 mkfs.ext4 -qF "$d"
	mkdir -p "$MNT"
	check "mount" 30 mount "$d" "$MNT" && {
		check "a tree of files, checksums" 120 copy_tree "$MNT"
		check "umount" 30 umount "$MNT"
		check "fsck" 60 fsck.ext4 -fn "$d"
	}
	before=$(merges)
	check "data is written" 60 put_data "$d"
	check "and once more, through the page cache" 60 buffered_data
	check "and is there" 60 same_data "$d"
	check "fio with verify, 128 of 4 KiB at once" 120 merged
	[ "$(merges)" -gt "$before" ]
	result $? "requests were merged ($(($(merges) - before)))"
}

# Not by taking the link down: see iser.sh
silence() {
	link_silent 0 $((8 * SLOW))
	wait_for 60 session_up
}

# Requests end in the middle of their data when their connection does. That this is not taken for wrong data cannot be seen
# here: ib_iser throws away what it is told of protection information then (KUnit sroce_integrity, "cancelled", sees it)
cut_off() {
	local fio
	fio --name=reads --filename="$d" --rw=randread --bs=128k --size=48m --ioengine=libaio --direct=1 --iodepth=16 --time_based \
		--runtime=$((20 * SLOW)) >"$TMP/reads" 2>&1 &
	fio=$!
	sleep 1
	check "connections end under reads" $((240 * SLOW)) silence
	wait_for $((120 * SLOW)) eval "! kill -0 $fio"
	kill $fio 2>/dev/null && note "fio did not end"
	wait $fio
	result $? "which get what they want"
}

iser_round() { # TYPE
	check "target, type $1, blocks of $BLOCK" 20 target_up "$1"
	session
	[[ $(profile) == T10-DIF-TYPE$1-* ]]
	result $? "the disk has protection information ($(profile))"
	rdma resource show mr -dd 2>/dev/null | grep -q integrity
	result $? "its regions have"
	before=$(found '[012]')
	check "fio with verify, 4 KiB to 1 MiB" 120 fio_mixed "$d" --io_size="$(mb 32)"
	small_io
	check "what is stored is right" 120 stored
	[ "$(found '[012]')" = "$before" ]
	result $? "nobody has found an error"
	errors_found "in memory"
	check "none in memory" 10 no_pi_in_memory
	check "fio with verify, none in memory" 120 fio_mixed "$d" --io_size="$(mb 32)"
	errors_found "none in memory"
	cut_off
	check "the data is what it was" 60 same_data "$d"
	check "logout" 60 node --logout
	iscsiadm -k 0
	check "target goes" 30 target_down
}

# What a device can do is asked for when it is made
driver_load
[ ! -w /sys/module/sroce/parameters/t10_pi ] || echo Y >/sys/module/sroce/parameters/t10_pi
links_up 1
check "ib_iser with protection information" 20 with_pi
iser_round 1
BLOCK=4096
iser_round 1
check "initiator module unloads" 30 rmmod ib_iser
check "target module unloads" 30 rmmod ib_isert

# --- NVMe-oF ---------------------------------------------------------------------------------------

. "$SELF/storage/nvme_lib.sh"
for m in nvmet-rdma nvme-rdma scsi_debug sd_mod; do
	# scsi_debug makes a disk as soon as it is there
	modprobe -nq $m && continue
	ktap_skip "NVMe-oF" "this kernel does not have $m"
	ktap_end
done
need_program nvme

initiator_down() { disconnect; }
target_down() {
	port_del 1
	subsystem_del "$NQN"
	modprobe -r scsi_debug
}

debug_disk() { lsscsi | awk '/scsi_debug/ { print $NF }' | grep -m 1 /dev/; }

pi_target() {
	local dir=$T/subsystems/$NQN backing
	modprobe -aq nvmet-rdma nvme-rdma sd_mod && modprobe scsi_debug dev_size_mb=64 dif=1 dix=1 guard=0 || return
	backing=$(wait_disk debug_disk) || return
	mkdir "$dir" && echo 1 >"$dir/attr_allow_any_host" && echo 1 >"$dir/attr_pi_enable" &&
		mkdir "$dir/namespaces/1" && echo -n "$backing" >"$dir/namespaces/1/device_path" &&
		echo 1 >"$dir/namespaces/1/enable" || return
	port 1 "$TGT" "$NQN" param_pi_enable=1
}

# Connections are not made to end here: nvmet-rdma of Linux 7.2 lets go twice of what a read holds whose data with protection
# information has not got through (Documentation/storage.md), and then its queue never ends.
check "NVMe-oF target" 30 pi_target
check "connect" 60 connect "$TGT" --nr-io-queues=2
d=$(wait_disk disk) || bail "no disk"
[ "$(profile)" = T10-DIF-TYPE1-CRC ]
result $? "the name space has protection information ($(profile))"
before=$(found '[012]')
check "fio with verify, 4 KiB to 1 MiB" 120 fio_mixed "$d" --size=48m --io_size=48m
check "none in memory" 10 no_pi_in_memory
check "fio with verify, none in memory" 120 fio_mixed "$d" --size=48m --io_size=48m
[ "$(found '[012]')" = "$before" ]
result $? "nobody has found an error"
check "disconnect" 60 disconnect
check "target goes" 30 target_down
check "initiator module unloads" 30 rmmod nvme-rdma
check "target module unloads" 30 rmmod nvmet-rdma
ktap_end
