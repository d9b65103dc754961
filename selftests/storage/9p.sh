#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# 9p over RDMA: the kernel's client, and a small server of our own.
. "$(dirname "$0")/lib.sh"

need 9pnet_rdma 9p null_blk
need_program fio mkfs.ext4
SERVER=$(program serve_9p) || bail "serve_9p was not built"
EXPORT=$TMP/export

protocol_down() {
	umount -lf "$MNT"
	kill "$server"
	umount -l "$EXPORT"
	ram_disk_del sram0
}

file_operations() {
	local d=$MNT/ops i
	mkdir "$d" && cd "$d" || return
	for ((i = 0; i < 100; i++)); do echo "$i" >f$i || return; done
	[ "$(find . -name 'f*' | wc -l)" = 100 ] || return
	for ((i = 0; i < 100; i += 2)); do mv f$i g$i || return; done
	ln g0 hard && ln -s g2 soft && [ "$(cat hard soft)" = "0
2" ] && [ "$(stat -c %h g0)" = 2 ] || return
	chmod 640 f1 && [ "$(stat -c %a f1)" = 640 ] || return
	truncate -s 1M sparse && [ "$(stat -c %s sparse)" = 1048576 ] || return
	mkdir -p a/b/c && mv a z && [ -d z/b/c ] && ! rmdir z 2>/dev/null || return
	cd / && rm -r "$d" && [ ! -e "$d" ]
}

links_up 1
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
mkdir -p "$EXPORT" "$MNT"
mkfs.ext4 -qF "$RAM" && mount "$RAM" "$EXPORT"
result $? "a file system for the server"
"$SERVER" $TGT "$EXPORT" >"$TMP/server" 2>&1 &
server=$!
wait_for 10 eval 'rdma resource show cm_id | grep -q LISTEN'
before=$(sent rsi0)
for size in 8192 1048576; do
	name="messages of $size bytes"
	check "$name: mount" 30 mount -t 9p -o trans=rdma,port=5640,version=9p2000.L,msize=$size,cache=none $TGT "$MNT" || {
		notes <"$TMP/server"
		dmesg | tail -n 5 | notes
		continue
	}
	check "$name: file operations" 60 file_operations
	check "$name: a tree of files, checksums" 120 copy_tree "$MNT"
	check "$name: fio with verify" 120 fio_verify "$MNT/fio" --direct=0 --bsrange=4k-1m --blockalign=4k \
		--size="$(mb 32)" --io_size="$(mb 24)" --ioengine=sync
	rm -f "$MNT/fio"
	check "$name: umount" 30 umount "$MNT"
done
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
kill -0 $server && kill $server
result $? "the server was there to the end"
wait $server 2>/dev/null
umount "$EXPORT"
check "the module unloads" 30 modprobe -r 9pnet_rdma
ktap_end
