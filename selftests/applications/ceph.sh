#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Ceph with its RDMA messenger (ms_type async+rdma): a monitor on one host, an object storage daemon on each, which keep the
# same objects. Objects are written and read back, every byte is compared, by one client and by many at once; a daemon goes, gets
# what it has missed when it comes back, and has it when the other one is gone.
. "$(dirname "$0")/lib.sh"
needs "Ceph" ceph ceph-mon ceph-osd monmaptool rados
OBJECTS=8 SECONDS_OF_BENCH=5
[ "$SET" = full ] && OBJECTS=32 SECONDS_OF_BENCH=20
FSID=7d1ab1b5-2d0a-4f53-9a0c-5f1d5a6d2c11
DIR=$TMP/ceph

# configure NAMESPACE DEVICE IP FILE : what the programs of a host read. The pools of buffers are what a small machine has.
configure() {
	cat >"$4" <<-END
		[global]
		fsid = $FSID
		mon host = v2:$IP_A:3300
		auth cluster required = none
		auth service required = none
		auth client required = none
		ms type = async+rdma
		ms async rdma device name = $2
		ms async rdma gid idx = $(gid_index "$1" "$2" "$3")
		ms async rdma roce ver = 2
		ms async rdma receive queue len = 64
		ms async rdma receive buffers = 1024
		ms async rdma send buffers = 256
		public addr = $3
		run dir = $DIR
		admin socket = $DIR/\$name.\$pid.asok
		log file = $DIR/\$name.log
		mon data = $DIR/mon
		osd data = $DIR/osd\$id
		osd objectstore = memstore
		memstore device bytes = 512M
		osd pool default size = 2
		osd pool default min size = 1
		osd crush chooseleaf type = 0
		mon allow pool size one = true
	END
}

with_a() { limit "${LIMIT:-30}" in_ns "$A" "$1" -c "$DIR/a.conf" "${@:2}"; }
with_b() { limit "${LIMIT:-30}" in_ns "$B" "$1" -c "$DIR/b.conf" "${@:2}"; }

monitor_up() {
	monmaptool --create --fsid "$FSID" --addv a "[v2:$IP_A:3300]" "$DIR/monmap" >"$TMP/monmap" 2>&1 &&
		with_a ceph-mon -i a --mkfs --monmap "$DIR/monmap" >"$TMP/mkfs" 2>&1 || return
	ip netns exec "$A" ceph-mon -c "$DIR/a.conf" -i a -f >"$TMP/mon" 2>&1 &
	wait_for 60 answers
}
answers() { LIMIT=10 with_b ceph -s >"$TMP/status" 2>&1; }

# storage_up ID HOST : a daemon that holds objects, in its memory, and in a file while it does not run
storage_up() {
	local uuid
	uuid=$(cat /proc/sys/kernel/random/uuid)
	mkdir "$DIR/osd$1"
	with_a ceph osd new "$uuid" "$1" && "with_$2" ceph-osd -i "$1" --mkfs --osd-uuid "$uuid" && storage_runs "$1" "$2"
}
storages_up() { storage_up 0 a && storage_up 1 b; }
storage_runs() {
	local ns="$A"
	[ "$2" = a ] || ns="$B"
	ip netns exec "$ns" ceph-osd -c "$DIR/$2.conf" -i "$1" -f >>"$TMP/osd$1" 2>&1 &
	echo $! >"$TMP/osd$1.pid"
	wait_for 60 storage_is "$1" up
}
storage_is() { LIMIT=10 with_a ceph osd dump 2>/dev/null | grep -q "^osd\.$1 $2"; }
storage_goes() { kill "$(cat "$TMP/osd$1.pid")" && wait_for 60 storage_is "$1" down; }
# Nobody here adds up what placement groups are like: each is asked
clean() {
	local i
	for i in 0 1 2 3; do LIMIT=20 with_b ceph tell "1.$i" query 2>/dev/null | grep -m 1 '"state": '; done >"$TMP/pgs"
	[ "$(grep -c '"active+clean"' "$TMP/pgs")" -eq 4 ]
}
comes_back() { storage_runs 1 b && wait_for 120 clean; }

writes() {
	local i
	for ((i = 0; i < OBJECTS; i++)); do with_b rados -p data put "object$i" "$TMP/data.$i" || return; done
}
# several clients at once
reads() {
	local i jobs=()
	for ((i = 0; i < OBJECTS; i++)); do
		with_b rados -p data get "object$i" "$TMP/read.$i" &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	for ((i = 0; i < OBJECTS; i++)); do cmp "$TMP/data.$i" "$TMP/read.$i" || return; done
}
bench() { LIMIT=120 with_b rados -p data bench "$SECONDS_OF_BENCH" "$@"; }
# rados compares what it reads with what it has written
bench_reads() { bench seq; }

ulimit -l unlimited
mkdir -p "$DIR"
devices_up 9000
configure $A $DEV_A $IP_A "$DIR/a.conf"
configure $B $DEV_B $IP_B "$DIR/b.conf"
application "a monitor, asked from the other host" 120 1000 monitor_up
grep -a health "$TMP/status" | notes
application "two object storage daemons" 120 1000 storages_up
application "a pool" 60 100 with_b ceph osd pool create data 4
for ((i = 0; i < OBJECTS; i++)); do head -c $(((i + 1) * 777777)) /dev/urandom >"$TMP/data.$i"; done
application "objects are written" 60 20000 writes
application "they are read by many clients at once, and are right" 60 5000 reads
storage_goes 1
result $? "a daemon goes"
for ((i = 0; i < OBJECTS; i++)); do head -c $(((i + 1) * 654321)) /dev/urandom >"$TMP/data.$i"; done
writes >"$TMP/writes" 2>&1
result $? "objects are written anew" || notes 10 <"$TMP/writes"
application "it comes back and gets them" 180 20000 comes_back
notes <"$TMP/pgs"
storage_goes 0
result $? "the other one goes"
reads >"$TMP/reads" 2>&1
result $? "what is read is right" || notes 10 <"$TMP/reads"
storage_runs 0 a && wait_for 120 clean
result $? "both are there again"
application "rados bench, writing" 120 20000 bench write -b 65536 --no-cleanup
application "rados bench, reading and comparing" 120 5000 bench_reads
ktap_end
