#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Cgroups: what the device reads from a disk for a process, whose memory on demand is there, counts in the process's
# group and keeps to its limit.
. "$(dirname "$0")/lib.sh"

TOP=/sys/fs/cgroup
GROUP=$TOP/srtest_io
DISK=/dev/nullb0
export DISK

cgroup_finish() {
	rmdir "$GROUP" 2>/dev/null
	finish
}
trap cgroup_finish EXIT

skip_all() {
	ktap_skip "cgroup_io" "$1"
	ktap_end
}

grep -qsw io $TOP/cgroup.controllers || skip_all "no io controller in cgroup2"
modprobe null_blk nr_devices=1 gb=1 memory_backed=1 2>/dev/null
[ -b $DISK ] || skip_all "no null_blk"
ONDISK=$(program ondisk) || bail "ondisk was not built"
devices_up 9000
echo "+memory +io" >$TOP/cgroup.subtree_control || bail "the controllers cannot be had"
mkdir $GROUP || bail "cannot make a cgroup"
NUMBER=$(cat /sys/block/nullb0/dev)
dd if=/dev/urandom of=$DISK bs=1M count=16 oflag=direct 2>/dev/null || bail "cannot write to $DISK"

# Bytes that the group has read from the disk
counted() { awk -v disk="$NUMBER" '$1 == disk { sub(/.*rbytes=/, ""); print $1 + 0 }' $GROUP/io.stat; }

set_limit() { echo "$NUMBER rbps=$1" >$GROUP/io.max; }

# read_disk : all of it, none of which is in memory; $took is in ms
read_disk() {
	blockdev --flushbufs $DISK
	echo 1 >/proc/sys/vm/drop_caches
	# shellcheck disable=SC2016 # for the inner shell
	limit 120 bash -c 'echo $$ >"$0/cgroup.procs" && exec ip netns exec "$@"' $GROUP $A "$ONDISK" -d $DEV_A -i $IP_A \
		>"$TMP/ondisk" 2>&1
	local status=$?
	note "$(tail -n 1 "$TMP/ondisk"); the group has read $(counted) bytes so far"
	took=$(awk '$1 == "read" { print $4 }' "$TMP/ondisk")
	return $status
}

read_disk
result $? "memory on a disk is read"
[ "$(counted)" -ge $((16 << 20)) ]
result $? "it counts in the process's group"
set_limit $((4 << 20))
result $? "the group gets a limit of 4 MiB/s"
read_disk
result $? "memory on a disk is read with a limit"
# 16 MiB; the first moments are free
[ "${took:-0}" -ge 3000 ]
result $? "it takes as long as the limit says"
rmdir $GROUP
result $? "the group can be removed"
ktap_end
