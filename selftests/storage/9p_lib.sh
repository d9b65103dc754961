# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# 9p over RDMA: the kernel's client, and a small server of our own. Sourced, never run, after lib.sh.

EXPORT=$TMP/export
target_modules="null_blk" target_programs=mkfs.ext4
initiator_modules="9pnet_rdma 9p" initiator_programs=fio

target_up() { # DEVICE
	local program
	program=$(program serve_9p) || { echo "serve_9p was not built"; return 1; }
	mkdir -p "$EXPORT" && mkfs.ext4 -qF "$1" && mount "$1" "$EXPORT" || return
	server_start "$program" "$TGT" "$EXPORT" && wait_for 10 eval 'rdma resource show cm_id | grep -q LISTEN'
}

target_down() { server_stop && umount "$EXPORT"; }

initiator_down() { umount -lf "$MNT"; }

mounted_each() {
	local before size name
	before=$(sent rsi0)
	mkdir -p "$MNT"
	for size in 8192 1048576; do
		name="messages of $size bytes"
		check "$name: mount" 30 mount -t 9p -o trans=rdma,port=5640,version=9p2000.L,msize=$size,cache=none "$TGT" "$MNT" || {
			dmesg | tail -n 5 | notes
			continue
		}
		check "$name: file operations" 60 file_operations links_and_modes
		check "$name: a tree of files, checksums" 120 copy_tree "$MNT"
		check "$name: fio with verify" 120 fio_verify "$MNT/fio" --direct=0 --bsrange=4k-1m --blockalign=4k \
			--size="$(mb 32)" --io_size="$(mb 24)" --ioengine=sync
		rm -f "$MNT/fio"
		check "$name: umount" 30 umount "$MNT"
	done
	[ $(($(sent rsi0) - before)) -gt 1000 ]
	result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
}
