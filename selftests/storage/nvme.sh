#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# NVMe over RDMA: nvmet-rdma on RAM disks and a file, nvme-rdma on the other end of the link.
. "$(dirname "$0")/lib.sh"

NQN=nqn.2026-01.test:sroce
T=$CONFIGFS/nvmet

# --- target ---------------------------------------------------------------------------------------

# subsystem NAME DEVICE... : with one name space for each
subsystem() {
	local dir=$T/subsystems/$1 n=0 dev
	shift
	mkdir "$dir" && echo 1 >"$dir/attr_allow_any_host" || return
	for dev; do
		n=$((n + 1))
		mkdir "$dir/namespaces/$n" && echo -n "$dev" >"$dir/namespaces/$n/device_path" &&
			echo 1 >"$dir/namespaces/$n/enable" || return
	done
}

# port NUMBER ADDRESS SUBSYSTEM [ATTRIBUTE=VALUE...]
port() {
	local dir=$T/ports/$1 sub=$3 a
	mkdir "$dir" && echo rdma >"$dir/addr_trtype" && echo ipv4 >"$dir/addr_adrfam" &&
		echo "$2" >"$dir/addr_traddr" && echo 4420 >"$dir/addr_trsvcid" || return
	shift 3
	for a; do echo "${a#*=}" >"$dir/${a%%=*}" || return; done
	ln -s "$T/subsystems/$sub" "$dir/subsystems/$sub"
}

port_del() {
	rm -f "$T/ports/$1/subsystems/"*
	rmdir "$T/ports/$1"
}

subsystem_del() {
	local n
	for n in "$T/subsystems/$1/namespaces/"*; do
		echo 0 >"$n/enable"
		rmdir "$n"
	done
	rmdir "$T/subsystems/$1"
}

target_down() {
	local p s
	for p in "$T/ports/"*; do [ -d "$p" ] && port_del "${p##*/}"; done
	for s in "$T/subsystems/"*; do [ -d "$s" ] && subsystem_del "${s##*/}"; done
	return 0
}

# --- initiator ------------------------------------------------------------------------------------

# Errors are found within seconds, and given up after minutes
connect() { # ADDRESS [OPTION...]
	local address=$1
	shift
	nvme connect -t rdma -a "$address" -s 4420 -n $NQN --reconnect-delay=1 --ctrl-loss-tmo=300 \
		--keep-alive-tmo=$((2 * SLOW)) "$@"
}

disconnect() { nvme disconnect -n $NQN; }

# the disk that stands for all paths to it
disk() {
	local s d
	for s in /sys/class/nvme-subsystem/*; do
		[ "$(cat "$s/subsysnqn")" = $NQN ] || continue
		for d in "$s"/nvme*n1; do
			d=${d##*/}
			[[ $d == *c*n* ]] || { echo "/dev/$d"; return; }
		done
	done
	return 1
}

controllers() {
	local c
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" = $NQN ] && echo "${c##*/}"
	done
}

# states STATE : are all controllers in it?
states() {
	local c
	[ -n "$(controllers)" ] || return
	for c in $(controllers); do [ "$(cat "/sys/class/nvme/$c/state")" = "$1" ] || return; done
}

some_state() {
	local c
	for c in $(controllers); do [ "$(cat "/sys/class/nvme/$c/state")" = "$1" ] && return; done
	return 1
}

# path_of ADDRESS : its controller
path_of() {
	local c
	for c in $(controllers); do
		grep -q "traddr=$1\>" "/sys/class/nvme/$c/address" && echo "$c" && return
	done
	return 1
}

protocol_down() {
	disconnect
	target_down
	rmmod nvmet-rdma nvme-rdma
	ram_disk_del sram0
	ram_disk_del sram1
}

# --- tests ----------------------------------------------------------------------------------------

need nvme-rdma nvmet-rdma null_blk
need_program nvme fio mkfs.ext4

basic() {
	local name=$1 d
	shift
	check "$name: connect" 30 connect $TGT "$@" || return
	d=$(wait_disk disk) || { ktap_fail "$name: there is no disk"; return 1; }
	disk_checks "$name" "$d"
	check "$name: fio with verify, four jobs" 120 fio_verify "$d" --bs=16k --size=8m --numjobs=4 --offset_increment=16m
	check "$name: disconnect" 30 disconnect
}

test_basic() {
	subsystem $NQN "$RAM" && port 1 $TGT $NQN
	result $? "target"
	check "discover" 30 nvme discover -t rdma -a $TGT -s 4420
	grep -q $NQN "$TMP/out"
	result $? "the subsystem is discovered"
	basic "RAM disk"
	[ "$SET" = quick ] || basic "RAM disk, one queue" --nr-io-queues=1 --queue-size=16
	target_down
}

# Data of a write in the command itself, or fetched by RDMA READ
test_inline() {
	local size
	for size in 0 16384; do
		subsystem $NQN "$RAM" && port 1 $TGT $NQN param_inline_data_size=$size
		result $? "inline data of $size bytes: target"
		basic "inline data of $size bytes"
		target_down
	done
}

# The disk completes in hard interrupts, and the answers are posted from there
test_hard_interrupt() {
	local dev
	dev=$(ram_disk sram1 256 irqmode=2 completion_nsec=20000) || { ktap_skip "disk with interrupts" "no null_blk"; return; }
	subsystem $NQN "$dev" && port 1 $TGT $NQN
	result $? "disk with interrupts: target"
	basic "disk with interrupts"
	target_down
	ram_disk_del sram1
}

test_file() {
	truncate -s 256M "$TMP/disk"
	subsystem $NQN "$TMP/disk" && port 1 $TGT $NQN
	result $? "file: target"
	basic "file"
	target_down
	rm "$TMP/disk"
}

# Receive work requests that all connections share
test_srq() {
	modprobe -r nvmet-rdma && modprobe nvmet-rdma use_srq=1 || { ktap_skip "shared receive queue" "no such option"; return; }
	subsystem $NQN "$RAM" && port 1 $TGT $NQN
	result $? "shared receive queue: target"
	basic "shared receive queue"
	target_down
	modprobe -r nvmet-rdma && modprobe nvmet-rdma
}

reset_some() {
	local i
	for ((i = 0; i < 3; i++)); do
		nvme reset "/dev/$(controllers)" || return
		sleep 1
	done
	wait_for 20 states live
}

# longer than the keep-alive time: the controller gives the connection up, and comes back
long_flap() {
	link_flap 0 $((6 * SLOW)) &
	wait_for 20 states connecting || { echo "the connection was not given up"; return 1; }
	wait $!
	wait_for 40 states live
}

short_flaps() {
	local i
	for ((i = 0; i < 4; i++)); do
		link_flap 0 0.3
		sleep 0.7
	done
	wait_for 20 states live
}

module_again() {
	port_del 1
	modprobe -r nvmet-rdma || return
	sleep 2
	modprobe nvmet-rdma && port 1 $TGT $NQN || return
	wait_for 40 states live
}

target_device_again() {
	limit 30 rdma link del rst0 || return
	sleep 2
	device_up rst0 st0 $TGT || return
	# its listener went with the device
	port_del 1
	port 1 $TGT $NQN || return
	wait_for 40 states live
}

test_recovery() {
	local d
	subsystem $NQN "$RAM" && port 1 $TGT $NQN && connect $TGT
	result $? "recovery: target and connection"
	d=$(wait_disk disk) || { ktap_fail "recovery: there is no disk"; return; }
	under_io "reset" 6 "$d" reset_some
	under_io "short link failures" 8 "$d" short_flaps
	under_io "keep-alive lost" 14 "$d" long_flap
	under_io "target module removed" 10 "$d" module_again
	under_io "target's device removed" 10 "$d" target_device_again
	check "recovery: fio with verify" 60 fio_mixed "$d"
	check "recovery: disconnect" 30 disconnect
	target_down
}

one_path_down() {
	ip link set st1 down
	wait_for 30 some_state connecting || { echo "no path was given up"; return 1; }
	sleep 2
	link_flap 1 0
	wait_for 40 states live
}

# The initiator gives the controllers of a device up that goes
initiator_device_again() {
	limit 30 rdma link del rsi1 || return
	sleep 1
	[ "$(controllers | wc -l)" = 1 ] || { echo "controllers: $(controllers)"; return 1; }
	device_up rsi1 si1 10.97.1.1 && connect 10.97.1.2 || return
	wait_for 20 states live
}

test_multipath() {
	local d
	[ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = Y ] || {
		ktap_skip "multipath" "not in this kernel"
		return
	}
	subsystem $NQN "$RAM" && port 1 $TGT $NQN && port 2 10.97.1.2 $NQN && connect $TGT && connect 10.97.1.2
	result $? "multipath: target and two connections"
	d=$(wait_disk disk) || { ktap_fail "multipath: there is no disk"; return; }
	echo round-robin >"$(dirname /sys/class/nvme-subsystem/*/iopolicy)/iopolicy"
	under_io "multipath, a link taken down" 12 "$d" one_path_down
	under_io "multipath, a device of the initiator removed" 8 "$d" initiator_device_again
	check "multipath: disconnect" 30 disconnect
	target_down
}

links_up 2
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
tests=(basic inline hard_interrupt file srq recovery multipath)
[ $# -eq 0 ] || tests=("$@")
for t in "${tests[@]}"; do "test_$t"; done
check "target module unloads" 30 rmmod nvmet-rdma
check "initiator module unloads" 30 rmmod nvme-rdma
ktap_end
