# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # much of what is set here is for those who source it
# What the tests of storage and file system protocols share. Sourced, never run.
#
# PROTOCOL_lib.sh next to this has, of a protocol that is tested between two machines as well (two_machines.sh):
#	target_modules, target_programs, target_up [DISK], target_down, target_again, and the same of the initiator
#	as far as there is something to do: what each side needs, modules first that can be unloaded afterwards;
#	target_actions: what else the initiator may ask the target for
#
# Most of these protocols live in the first network namespace only. So both ends are there, each with an
# RDMA device on its own end of a veth, and policy routing sends what is for the other end over the link.
# That changes the routing rules of the machine, and the tests ask to be in a guest of the lab
# (or for STORAGE_HERE=1).
#
#	initiator: netdev si0, device rsi0, 10.97.0.1      target: st0, rst0, 10.97.0.2
#	the second link, with "links_up 2": si1, rsi1, 10.97.1.1; st1, rst1, 10.97.1.2
. "$(dirname "$0")/../lib.sh"

# two_machines.sh has others
[ ${#TGTS[@]} -gt 0 ] || I_NETDEVS=(si0 si1) T_NETDEVS=(st0 st1) INIS=(10.97.0.1 10.97.1.1) TGTS=(10.97.0.2 10.97.1.2)
INI=${INIS[0]} TGT=${TGTS[0]}
LINKS=0
CONFIGFS=/sys/kernel/config
MNT=$TMP/mnt

[ -n "${LAB_TARGET:-}${STORAGE_HERE:-}${TWO_MACHINES:-}" ] || {
	ktap_skip "storage" "changes routing rules: only in a guest of the lab, or with STORAGE_HERE=1"
	ktap_end
}

# --- links ----------------------------------------------------------------------------------------

device_up() { # DEVICE NETDEV ADDRESS
	limit 20 rdma link add "$1" type "$DRIVER" netdev "$2" || return
	wait_for 10 has_gid "$1" "$3"
}

has_gid() { grep -qs "$(gid_of "$2")" "/sys/class/infiniband/$1/ports/1/gids/"*; }

sysctls() { # NETDEV
	local v=/proc/sys/net/ipv4/conf/$1
	echo 1 >"$v/accept_local"
	echo 0 >"$v/rp_filter"
	echo 1 >"$v/arp_ignore"
	echo 2 >"$v/arp_announce"
	echo 1 >"/proc/sys/net/ipv6/conf/$1/disable_ipv6"
}

link_one() { # NUMBER MTU
	local n=$1 a=10.97.$1.1 b=10.97.$1.2 d
	ip link add si"$n" mtu "$2" type veth peer name st"$n" mtu "$2" || return
	for d in si$n st$n; do
		sysctls "$d"
		ip link set "$d" up
	done
	ip addr add "$a"/24 dev si"$n" && ip addr add "$b"/24 dev st"$n" || return
	ip rule add pref 1 iif si"$n" lookup local
	ip rule add pref 1 iif st"$n" lookup local
	ip route add "$b" dev si"$n" src "$a" table $((100 + n))
	ip route add "$a" dev st"$n" src "$b" table $((100 + n))
	ip rule add pref 2 to "$b" lookup $((100 + n))
	ip rule add pref 2 to "$a" from "$b" lookup $((100 + n))
	device_up rsi"$n" si"$n" "$a" && device_up rst"$n" st"$n" "$b"
}

# links_up N [MTU] : with N links, over which everything really goes
links_up() {
	local n
	driver_load
	# not from queue pair to queue pair
	[ ! -w /sys/module/sroce/parameters/direct ] || echo N >/sys/module/sroce/parameters/direct
	sysctls all
	for ((n = 0; n < $1; n++)); do
		link_one $n "${2:-9000}" || bail "no link $n"
	done
	LINKS=$1
	ip rule add pref 3 lookup local
	ip rule del pref 0 2>/dev/null
	for ((n = 0; n < $1; n++)); do
		meet $n || bail "link $n does not work"
	done
}

# meet NUMBER : let both ends know each other's MAC address. rdma_cm asks, and then begins to wait for the answer,
# which over a veth is there before that: it would wait for seconds, or half a minute, for nothing.
meet() {
	ping -q -c 1 -W 2 -I 10.97."$1".1 10.97."$1".2 >/dev/null && ping -q -c 1 -W 2 -I 10.97."$1".2 10.97."$1".1 >/dev/null
}

links_down() {
	local n
	[ "$LINKS" -gt 0 ] || return 0
	ip rule add pref 0 lookup local 2>/dev/null
	for ((n = 0; n < LINKS; n++)); do
		rdma link del rsi$n 2>/dev/null
		rdma link del rst$n 2>/dev/null
		ip link del si$n
		ip rule del pref 2
		ip rule del pref 2
		ip rule del pref 1
		ip rule del pref 1
	done
	ip rule del pref 3
	LINKS=0
}

# ask ACTION : have the target do something, wherever it is (two_machines.sh has another)
ask() { "$@"; }

# link_flap NUMBER SECONDS : the link is down for so long
link_flap() {
	link_down "$1"
	sleep "$2"
	link_up "$1"
}

# What may be asked for: nobody gives a connection up for the first, everybody for the second
flap() { link_flap 0 1; }
outage() { link_flap 0 $((6 * SLOW)); }
second_link_down() { link_down 1; }
second_link_up() { link_up 1; }

link_down() { ip link set st"$1" down; }

link_up() {
	ip link set st"$1" up
	# neither survives that the netdev is down
	ip route replace 10.97."$1".1 dev st"$1" src 10.97."$1".2 table $((100 + $1))
	ip route replace 10.97."$1".2 dev si"$1" src 10.97."$1".1 table $((100 + $1))
	meet "$1" || true
}

# link_silent NUMBER SECONDS : nothing arrives for so long, and no device or neighbour is seen to go
link_silent() {
	local n=$1
	ip neigh replace 10.97."$n".2 lladdr "$(cat /sys/class/net/st"$n"/address)" dev si"$n" nud permanent
	ip neigh replace 10.97."$n".1 lladdr "$(cat /sys/class/net/si"$n"/address)" dev st"$n" nud permanent
	tc qdisc replace dev si"$n" root netem loss 100% && tc qdisc replace dev st"$n" root netem loss 100% || return
	sleep "$2"
	tc qdisc del dev si"$n" root
	tc qdisc del dev st"$n" root
}

# device_again DEVICE NETDEV ADDRESS : remove it, whoever uses it, and make it again. RTRS keeps it for half a minute,
# waiting for its connections to say that they are gone.
device_again() {
	limit 90 rdma link del "$1" || { echo "it does not go"; return 1; }
	sleep 2
	device_up "$@"
}

# sent DEVICE : packets that it has sent
sent() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/"{rdma_tx_packets,sent_pkts} 2>/dev/null | head -n 1; }

# need MODULE... : skip the test where the kernel has no such module
need() {
	local m
	for m; do
		modprobe -q "$m" && continue
		ktap_skip "$m" "this kernel does not have the module"
		ktap_end
	done
}

need_program() {
	local p
	for p; do
		type -P "$p" >/dev/null && continue
		ktap_skip "$p" "not installed"
		ktap_end
	done
}

# missing target|initiator : the first thing that this side of the protocol lacks here, and what that is
missing() {
	local list=${1}_modules m
	for m in ${!list}; do
		modprobe -q "$m" || { echo "$m: this kernel does not have the module"; return; }
	done
	list=${1}_programs
	for m in ${!list:-}; do
		type -P "$m" >/dev/null || { echo "$m: not installed"; return; }
	done
}

# need_both : skip the test where one of the sides lacks something
need_both() {
	local side what
	for side in target initiator; do
		what=$(missing $side)
		[ -n "$what" ] || continue
		ktap_skip "${what%%: *}" "${what#*: }"
		ktap_end
	done
}

# side_down target|initiator : whatever state it is in
side_down() {
	[ "$(type -t "${1}_down")" != function ] || "${1}_down"
}

protocol_down() {
	side_down initiator
	side_down target
	ram_disk_del sram0
}

storage_finish() {
	protocol_down >/dev/null 2>&1
	mountpoint -q "$MNT" && umount -l "$MNT"
	links_down
	finish
}
trap storage_finish EXIT

# --- servers that are programs -------------------------------------------------------------------

# server_start COMMAND... : in the background; it has to stay
server_start() {
	"$@" >"$TMP/server" 2>&1 &
	server=$!
	sleep "$SLOW"
	kill -0 $server || { cat "$TMP/server"; return 1; }
}

server_stop() {
	kill "$server" || { cat "$TMP/server"; return 1; }
	wait "$server" 2>/dev/null
	return 0
}

# --- disks and data -------------------------------------------------------------------------------

# ram_disk NAME MEGABYTES [ATTRIBUTE=VALUE...] : prints the block device
ram_disk() {
	local dir=$CONFIGFS/nullb/$1 a
	[ -d $CONFIGFS/nullb ] || modprobe null_blk nr_devices=0 || return
	mkdir "$dir" || return
	echo "$2" >"$dir/size"
	echo 1 >"$dir/memory_backed"
	shift 2
	for a; do echo "${a#*=}" >"$dir/${a%%=*}" || return; done
	echo 1 >"$dir/power" || return
	a=/dev/nullb$(cat "$dir/index")
	[ -b "$a" ] || a=/dev/${dir##*/}
	echo "$a"
}

ram_disk_del() {
	echo 0 >"$CONFIGFS/nullb/$1/power"
	rmdir "$CONFIGFS/nullb/$1"
}

# ram_target NAME SECONDS MEGABYTES : one link, and a target of the RAM disk $RAM, checked under that name
ram_target() {
	links_up 1
	RAM=$(ram_disk sram0 "$3") || bail "no RAM disk"
	check "$1" "$2" target_up "$RAM"
}

# mb MEGABYTES : less where everything is slow
mb() { echo "$(($1 / (SLOW > 1 ? 4 : 1)))m"; }

# fio_verify FILE [OPTION...] : write, read back, compare each block
fio_verify() {
	local file=$1
	shift
	(cd "$TMP" && fio --name=verify --filename="$file" --rw=randwrite --ioengine=libaio --direct=1 --iodepth=16 \
		--randrepeat=0 --verify=crc32c --do_verify=1 --verify_fatal=1 --verify_state_save=0 "$@")
}

# 4 KiB to 1 MiB, mixed
fio_mixed() {
	local file=$1
	shift
	fio_verify "$file" --bsrange=4k-1m --blockalign=4k --size="$(mb 96)" --io_size="$(mb 64)" --iodepth=8 "$@"
}

# fio_until SECONDS FILE : one run with verification after the other; says how many
fio_until() {
	local end=$((SECONDS + $1)) n=0
	while [ $SECONDS -lt $end ]; do
		fio_mixed "$2" --size="$(mb 48)" --io_size="$(mb 32)" >"$TMP/fio.$n" 2>&1 || {
			# what it says about the error comes first
			grep -aE '^(fio|verify)|err= *[1-9]|^ .*expected|received data' "$TMP/fio.$n" || cat "$TMP/fio.$n"
			return 1
		}
		rm -f "$TMP/fio.$n"
		n=$((n + 1))
		echo $n >"$TMP/fio.runs"
	done
	echo "$n runs of fio with verification"
}

# tree FOLDER : some files of all sizes, with their checksums in SUMS
tree() {
	local i
	mkdir -p "$1/a/b" "$1/c"
	for ((i = 0; i < 40; i++)); do
		head -c $((i * i * 317 + i)) /dev/urandom >"$1/a/b/f$i"
	done
	head -c $((20000000 / SLOW)) /dev/urandom >"$1/c/large"
	ln -s ../a/b/f7 "$1/c/link"
	(cd "$1" && find a c -type f -print0 | sort -z | xargs -0 sha256sum >SUMS)
}

# copy_tree FOLDER : a tree there, read back with nothing left in the page cache
copy_tree() {
	mountpoint -q "$MNT" || { echo "nothing is mounted"; return 1; }
	[ -e "$TMP/tree/SUMS" ] || tree "$TMP/tree"
	cp -a "$TMP/tree" "$1/" && sync -f "$1/tree/SUMS" || return
	echo 3 >/proc/sys/vm/drop_caches
	(cd "$1/tree" && sha256sum -c --quiet SUMS) && diff -r "$TMP/tree" "$1/tree" && rm -r "$1/tree"
}

# file_operations [COMMAND] : what programs do with files on $MNT; the command goes on with them: f1, g0, sparse
file_operations() {
	local d=$MNT/ops i
	mkdir "$d" && cd "$d" || return
	for ((i = 0; i < 100; i++)); do echo "$i" >f$i || return; done
	[ "$(find . -name 'f*' | wc -l)" = 100 ] || { echo "files: $(find . -name 'f*' | wc -l)"; return 1; }
	for ((i = 0; i < 100; i += 2)); do mv f$i g$i || return; done
	truncate -s 1M sparse && [ "$(stat -c %s sparse)" = 1048576 ] || return
	mkdir -p a/b/c && mv a z && [ -d z/b/c ] && ! rmdir z 2>/dev/null || return
	! cat nothing 2>/dev/null || return
	[ $# -eq 0 ] || "$1" || return
	cd / && rm -r "$d" && [ ! -e "$d" ]
}

# In a directory of file_operations, on file systems that have them
links_and_modes() {
	ln g0 hard && ln -s g2 soft && [ "$(cat hard soft)" = "0
2" ] && [ "$(stat -c %h g0)" = 2 ] || return
	chmod 640 f1 && [ "$(stat -c %a f1)" = 640 ]
}

# put_data DISK, same_data DISK : something at its beginning, that must be there later
put_data() {
	head -c 16M /dev/urandom >"$TMP/data" && dd if="$TMP/data" of="$1" bs=1M oflag=direct status=none
}

same_data() { dd if="$1" bs=1M count=16 iflag=direct status=none | cmp - "$TMP/data"; }

# disk_checks NAME DEVICE : a file system, files, then raw I/O; the device must have been used
disk_checks() {
	local name=$1 disk=$2 before
	before=$(sent rsi0)
	check "$name: mkfs" 60 mkfs.ext4 -qF "$disk"
	mkdir -p "$MNT"
	check "$name: mount" 30 mount "$disk" "$MNT" && {
		check "$name: a tree of files, checksums" 120 copy_tree "$MNT"
		check "$name: umount" 30 umount "$MNT"
		check "$name: fsck" 60 fsck.ext4 -fn "$disk"
	}
	check "$name: fio with verify, 4 KiB" 120 fio_verify "$disk" --bs=4k --size="$(mb 24)"
	check "$name: fio with verify, 4 KiB to 1 MiB" 120 fio_mixed "$disk"
	[ $(($(sent rsi0) - before)) -gt 1000 ]
	result $? "$name: it went over the device ($(($(sent rsi0) - before)) packets)"
}

# wait_disk COMMAND... : until it names a block device; prints it
wait_disk() {
	local end=$((SECONDS + 20 * SLOW)) disk
	while [ $SECONDS -lt $end ]; do
		disk=$("$@" 2>/dev/null)
		[ -n "$disk" ] && [ -b "$disk" ] && echo "$disk" && return
		sleep 0.2
	done
	return 1
}

# under_io NAME SECONDS DISK COMMAND... : COMMAND while fio runs, which must not notice. For what may excuse an error of
# fio there is a command in $excuse, which is given what fio said, and prints a reason.
under_io() {
	local name=$1 seconds=$2 disk=$3 fio status reason
	shift 3
	: >"$TMP/fio.runs"
	fio_until $((seconds * (SLOW > 1 ? 2 : 1))) "$disk" >"$TMP/under" 2>&1 &
	fio=$!
	sleep 1
	"$@" >"$TMP/under.command" 2>&1
	status=$?
	[ $status -eq 0 ] || notes <"$TMP/under.command"
	result $status "$name: done under I/O"
	wait_for $((seconds + 120)) eval "! kill -0 $fio"
	kill $fio 2>/dev/null && note "fio did not end"
	wait $fio
	status=$?
	notes <"$TMP/under"
	if [ $status -ne 0 ] && reason=$(${excuse:-false} "$TMP/under"); then
		ktap_skip "$name: no data lost" "$reason"
	else
		result $status "$name: no data lost"
	fi
}

# retransmissions_here : what says that something was sent again, or had to be asked for again
retransmissions_here() {
	cat /sys/class/infiniband/rs[it]*/ports/1/hw_counters/{local_ack_timeout_err,packet_seq_err,implied_nak_seq_err} 2>/dev/null |
		awk '{ n += $1 } END { print n + 0 }'
}
