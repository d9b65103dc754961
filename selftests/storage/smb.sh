#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# SMB Direct: the kernel's server, ksmbd, on a RAM disk, cifs on the other end of the link.
. "$(dirname "$0")/lib.sh"

EXPORT=$TMP/export
CONF=$TMP/ksmbd.conf
USERS=$TMP/ksmbd.users

need ksmbd cifs null_blk
need_program ksmbd.mountd ksmbd.adduser mount.cifs fio mkfs.ext4

server_up() { # DEVICE
	mkdir -p "$EXPORT" && mkfs.ext4 -qF "$1" && mount "$1" "$EXPORT" && chmod 777 "$EXPORT" || return
	cat >"$CONF" <<-END
		[global]
			netbios name = sroce
			server multi channel support = yes
			interfaces = st0
			bind interfaces only = yes
			smb3 encryption = disabled
		[share]
			path = $EXPORT
			writeable = yes
			force user = root
			create mask = 0777
			directory mask = 0777
	END
	: >"$USERS"
	ksmbd.adduser -C "$CONF" -P "$USERS" -a -p secret tester && ksmbd.mountd -C "$CONF" -P "$USERS" || return
	wait_for 10 listening_here
}

listening_here() { rdma resource show cm_id | grep -q LISTEN; }

server_down() {
	ksmbd.control --shutdown
	wait_for 10 eval '! pgrep ksmbd.mountd'
	pkill ksmbd.mountd
	umount "$EXPORT"
}

protocol_down() {
	umount -lf "$MNT"
	server_down
	rmmod cifs ksmbd
	ram_disk_del sram0
}

# A tree without the link: Windows has none
copy_files() {
	mountpoint -q "$MNT" || return
	tree "$TMP/tree" && rm "$TMP/tree/c/link" && cp -r "$TMP/tree" "$MNT/" && sync -f "$MNT/tree/SUMS" || return
	echo 3 >/proc/sys/vm/drop_caches
	(cd "$MNT/tree" && sha256sum -c --quiet SUMS) && diff -r "$TMP/tree" "$MNT/tree" && rm -r "$MNT/tree"
}

links_up 1
RAM=$(ram_disk sram0 768) || bail "no RAM disk"
check "server" 60 server_up "$RAM"
mkdir -p "$MNT"
before=$(sent rsi0)
check "mount" 60 mount.cifs //"$TGT"/share "$MNT" -o "rdma,vers=3.1.1,user=tester,password=secret,cache=none" || {
	dmesg | tail -n 20 | notes 20
	ktap_end
}
grep -q RDMA /proc/fs/cifs/DebugData
result $? "it is mounted over RDMA"
check "file operations" 120 file_operations
check "a tree of files, checksums" 120 copy_files
check "fio with verify, 4 KiB to 1 MiB" 180 fio_mixed "$MNT/fio" --direct=0 --size="$(mb 48)" --io_size="$(mb 32)"
rm -f "$MNT/fio"
check "umount" 60 umount "$MNT"
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
check "server ends" 60 server_down
wait_for 30 rmmod cifs
result $? "client module unloads"
check "server module unloads" 30 rmmod ksmbd
ktap_end
