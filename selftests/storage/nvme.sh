#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# NVMe over RDMA: nvmet-rdma on RAM disks and a file, nvme-rdma on the other end of the link.
. "$(dirname "$0")/lib.sh"

. "$SELF/storage/nvme_lib.sh"
need_both

basic() {
	local name=$1 d
	shift
	check "$name: connect" 30 connect $TGT "$@" || return
	d=$(wait_disk disk) || { ktap_fail "$name: there is no disk"; return 1; }
	disk_checks "$name" "$d"
	check "$name: fio with verify, four jobs" 120 fio_verify "$d" --bs=16k --size="$(mb 8)" --numjobs=4 --offset_increment=16m
	check "$name: disconnect" 30 disconnect
}

test_basic() {
	target_up "$RAM"
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
	target_up "$dev"
	result $? "disk with interrupts: target"
	basic "disk with interrupts"
	target_down
	ram_disk_del sram1
}

test_file() {
	truncate -s 256M "$TMP/disk"
	target_up "$TMP/disk"
	result $? "file: target"
	basic "file"
	target_down
	rm "$TMP/disk"
}

# Receive work requests that all connections share
test_srq() {
	modprobe -r nvmet-rdma && modprobe nvmet-rdma use_srq=1 || { ktap_skip "shared receive queue" "no such option"; return; }
	target_up "$RAM"
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
	target_again || return
	wait_for 40 states live
}

target_device_again() {
	device_again rst0 st0 $TGT || return
	# its listener went with the device
	port_del 1
	port 1 $TGT $NQN || return
	wait_for 40 states live
}

test_recovery() {
	local d
	target_up "$RAM" && connect $TGT
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
	target_up "$RAM" && port 2 10.97.1.2 $NQN && connect $TGT && connect 10.97.1.2
	result $? "multipath: target and two connections"
	d=$(wait_disk disk) || { ktap_fail "multipath: there is no disk"; return; }
	echo round-robin >"$(dirname /sys/class/nvme-subsystem/*/iopolicy)/iopolicy"
	under_io "multipath, a link taken down" 12 "$d" one_path_down
	under_io "multipath, a device of the initiator removed" 8 "$d" initiator_device_again
	check "multipath: disconnect" 30 disconnect
	target_down
}

protocol_down() {
	disconnect
	target_down
	rmmod nvmet-rdma nvme-rdma
	ram_disk_del sram0
	ram_disk_del sram1
}

links_up 2
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
tests=(basic inline hard_interrupt file srq recovery multipath)
[ $# -eq 0 ] || tests=("$@")
for t in "${tests[@]}"; do "test_$t"; done
check "target module unloads" 30 rmmod nvmet-rdma
check "initiator module unloads" 30 rmmod nvme-rdma
ktap_end
