# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Server and client of NFS over RDMA. Sourced, never run, after lib.sh.

# the client of version 3 has to know the path
EXPORT=/run/sroce-selftest-export
target_modules="rpcrdma nfsd null_blk" target_programs="rpcbind rpc.mountd rpc.nfsd exportfs mkfs.ext4"
initiator_modules="rpcrdma nfsv3 nfsv4" initiator_programs="mount.nfs fio"

# --- server ---------------------------------------------------------------------------------------

target_up() { # DEVICE
	mkdir -p "$EXPORT" /run/rpcbind /run/sendsigs.omit.d \
		/var/lib/nfs/{rpc_pipefs,v4recovery,nfsdcltrack,nfsdcld,sm,sm.bak}
	mkfs.ext4 -qF "$1" && mount "$1" "$EXPORT" && chmod 777 "$EXPORT" || return
	mount -t nfsd nfsd /proc/fs/nfsd && mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs || return
	rpcbind && rpc.statd --no-notify || return
	nfsdcld 2>/dev/null
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	exportfs -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 "*:$EXPORT" && rpc.nfsd 4 &&
		rpc.mountd -p 20048 || return
	listen
}

listen() {
	echo "rdma 20049" >/proc/fs/nfsd/portlist
	grep rdma /proc/fs/nfsd/portlist
}

# The server's threads end, and with them every connection
target_again() {
	echo 0 >/proc/fs/nfsd/threads
	sleep 2
	rpc.nfsd 4 && listen
}

target_down() {
	echo 0 >/proc/fs/nfsd/threads
	exportfs -au
	killall -q rpc.mountd nfsdcld rpc.statd rpcbind
	umount "$EXPORT"
	umount /proc/fs/nfsd /var/lib/nfs/rpc_pipefs
	rmdir "$EXPORT"
}

# --- client ---------------------------------------------------------------------------------------

initiator_down() { umount -lf "$MNT"; }

# What more is asked of a file system on the network
nfs_operations() {
	links_and_modes || return
	[ -z "$(tr -d '\0' <sparse)" ] || return
	dd if=/dev/urandom of=appended bs=70001 count=3 oflag=append conv=notrunc,fsync status=none &&
		[ "$(stat -c %s appended)" = 210003 ] || return
	flock appended true || return
	touch -d '2001-02-03 04:05:06 UTC' f1 && [ "$(stat -c %Y f1)" = 981173106 ]
}

# einval FILE : xprtrdma connects anew so soon that it is the device that goes once more
einval() { grep -q 'error=Invalid argument' "$1" && echo "EINVAL of xprtrdma, see storage.md"; }

# mounted NAME OPTIONS PATH [COMMAND [ARGUMENT...]] : mount it, use it; and then the command (NAME FILE ARGUMENT...)
mounted() {
	local name=$1 options=$2 path=$3 before
	shift 3
	before=$(sent rsi0)
	mkdir -p "$MNT"
	check "$name: mount" 90 mount -v -t nfs -o "$options,rdma,port=20049" "$TGT:$path" "$MNT" || return
	grep -q " $MNT nfs4\? .*proto=rdma" /proc/mounts
	result $? "$name: it is mounted over RDMA"
	check "$name: file operations" 120 file_operations nfs_operations
	check "$name: a tree of files, checksums" 120 copy_tree "$MNT"
	check "$name: fio with verify, 4 KiB to 1 MiB, direct" 180 fio_mixed "$MNT/fio"
	check "$name: fio with verify, fsync after each 8th" 180 fio_verify "$MNT/fio" --direct=0 --bsrange=4k-64k \
		--blockalign=4k --size="$(mb 16)" --fsync=8
	[ $(($(sent rsi0) - before)) -gt 1000 ]
	result $? "$name: it went over the device ($(($(sent rsi0) - before)) packets)"
	[ $# -eq 0 ] || "$1" "$name" "$MNT/fio" "${@:2}"
	rm -f "$MNT/fio"
	check "$name: umount" 60 umount "$MNT"
}

# NFS 4.2, then 3
mounted_each() { # [COMMAND [ARGUMENT...]]
	mounted "NFS 4.2" vers=4.2 / "$@"
	mounted "NFS 3" vers=3,nolock,mountport=20048,mountproto=tcp "$EXPORT" "$@"
}
