# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# What is tested of NVMe over RDMA, both ends in one kernel (nvme.sh) or on two machines (two_machines.sh). Sourced,
# never run, after nvme_lib.sh. The initiator is here; what the target has to do, it is asked for.

# nvme_cases [CASE...] : those, or all
nvme_cases() {
	local c
	[ $# -gt 0 ] || set -- basic queues vectors inline hard_interrupt file srq recovery initiator_device multipath
	for c; do "test_$c"; done
}

# serve NAME ACTION : the target is set up by that
serve() { check "$1: target" 60 ask "$2"; }

# connected NAME [OPTION...] : the disk is $d
connected() {
	check "$1: connect" 60 connect "$TGT" "${@:2}" || return
	d=$(wait_disk disk) || { ktap_fail "$1: there is no disk"; return 1; }
}

leave() { check "$1: disconnect" 60 disconnect; }

four_jobs() { # NAME [OPTION...]
	check "$1: fio with verify, four jobs" 120 fio_verify "$d" --bs=16k --size="$(mb 8)" --numjobs=4 \
		--offset_increment=16m "${@:2}"
}

# basic NAME [OPTION...] : all of it, from connect to disconnect
basic() {
	local d
	connected "$@" || return
	disk_checks "$1" "$d"
	four_jobs "$1"
	leave "$1"
}

test_basic() {
	serve "RAM disk" target_ram
	check "discover" 30 nvme discover -t rdma -a "$TGT" -s 4420
	grep -q "$NQN" "$TMP/out"
	result $? "the subsystem is discovered"
	basic "RAM disk"
	ask target_down
}

# --- queues ---------------------------------------------------------------------------------------

# queues_are NUMBER : for I/O. Each has a queue pair, and so has the one for administration.
queues_are() {
	local queues pairs
	queues=$(cat "/sys/class/nvme/$(controllers)/queue_count")
	pairs=$(rdma resource show qp | grep -c 'link rsi0/.*type RC')
	echo "$queues queues with that for administration, $pairs queue pairs"
	[ "$queues" = $(($1 + 1)) ] && [ "$pairs" = "$queues" ]
}

# moderated on|off : by ib_core, as it finds out what a queue's load is (DIM)
moderated() {
	local device
	for device in $(rdma dev show | sed -n 's/^[0-9]*: \([^:]*\):.*/\1/p'); do
		rdma dev set "$device" adaptive-moderation "$1" || return
	done
}

# vectors_show : vector, moderation count and time of each queue of the kernel's own that is moderated
vectors_show() {
	rdma resource show cq dev rsi0 -dd | awk '
		$1 == "dev" { on = /adaptive-moderation on/ }
		{ for (i = 1; i < NF; i++) value[$i] = $(i + 1) }
		on && /drv_moderation_us/ {
			print value["drv_comp_vector"], value["drv_moderation_count"], value["drv_moderation_us"]
		}'
}

# vectors_used : each processor has one, and there are queues on each
vectors_used() {
	vectors_show | cut -d ' ' -f 1 | sort -n | uniq
	[ "$(vectors_show | cut -d ' ' -f 1 | sort -n | uniq | tr '\n' ' ')" = "$(seq -s ' ' 0 $(($(nproc) - 1))) " ]
}

# was_moderated : the count of a queue is 0 until ib_core has set one, and never again
was_moderated() { vectors_show | awk '$2 { n++ } END { exit !n }'; }

# moderation_comes DISK : ib_core sets one where completions come more or less often than before, and so often it looks
moderation_comes() {
	local round
	for round in 1 2 3 4 5 6 7 8; do
		fio_verify "$1" --bs=4k --size="$(mb 4)" --numjobs=4 --offset_increment=16m --iodepth=64 || return
		fio_verify "$1" --bs=64k --size="$(mb 8)" --iodepth=1 || return
		! was_moderated || break
	done
	was_moderated
}

test_vectors() {
	local vectors=/sys/module/sroce/parameters/kernel_vectors
	if [ ! -w $vectors ] || [ "$(nproc)" -lt 2 ]; then
		ktap_skip "completion vectors" "another driver, or one processor"
		return
	fi
	serve "completion vectors" target_ram
	echo Y >$vectors
	# ib_core keeps the queues of a device for the next connection
	check "completion vectors: a device that has no queues yet" 120 device_again rsi0 "${I_NETDEVS[0]}" "$INI"
	check "completion vectors: adaptive moderation is switched on" 10 moderated on
	if connected "completion vectors"; then
		check "completion vectors: queues of the kernel on each" 10 vectors_used
		four_jobs "completion vectors"
		check "completion vectors: queues of the kernel are moderated" 240 moderation_comes "$d"
		vectors_show | notes 10
		leave "completion vectors"
	fi
	echo N >$vectors
	check "completion vectors: the device as it was" 120 device_again rsi0 "${I_NETDEVS[0]}" "$INI"
	check "completion vectors: adaptive moderation is switched off" 10 moderated off
	ask target_down
}

# with_queues NAME NUMBER [OPTION...]
with_queues() {
	local name=$1 number=$2 d
	shift 2
	connected "$name" "$@" || return
	check "$name: $number for I/O" 10 queues_are "$number"
	four_jobs "$name"
	check "$name: fio with verify, 4 KiB to 1 MiB" 120 fio_mixed "$d"
	[[ $* != *poll* ]] || polling "$name"
	leave "$name"
}

# Requests with this flag go to queues whose completions nobody is told of
polling() { # NAME
	[ "$(cat "/sys/class/nvme/$(controllers)"/nvme*n1/queue/io_poll)" = 1 ]
	result $? "$1: it can be polled"
	check "$1: fio with verify, polling" 120 fio_verify "$d" --ioengine=pvsync2 --hipri=1 --bs=16k --size="$(mb 8)"
}

# The kernel makes at most one of a kind for each processor
test_queues() {
	local n
	n=$(nproc)
	serve "queues" target_ram
	with_queues "one queue" 1 --nr-io-queues=1 --queue-size=16
	with_queues "a queue for each processor" "$n" --nr-io-queues="$n"
	with_queues "queues for reads, writes, polling" $((2 * n + 1)) --nr-io-queues="$n" --nr-write-queues="$n" --nr-poll-queues=1
	ask target_down
}

# --- other targets --------------------------------------------------------------------------------

# A command has 64 bytes; how much there may be in one, in units of 16
capsule() { nvme id-ctrl "/dev/$(controllers)" | awk '$1 == "ioccsz" { print $3 * 16 - 64 }'; }

test_inline() {
	local size name d
	for size in 0 16384; do
		name="inline data of $size bytes"
		serve "$name" target_inline_$size
		connected "$name" || continue
		[ "$(capsule)" = $size ]
		result $? "$name: the controller takes $(capsule)"
		disk_checks "$name" "$d"
		leave "$name"
		ask target_down
	done
}

test_hard_interrupt() {
	serve "disk with interrupts" target_interrupts
	basic "disk with interrupts"
	ask target_down
}

test_file() {
	serve "file" target_file
	basic "file"
	ask target_down
}

test_srq() {
	serve "shared receive queue" target_srq
	basic "shared receive queue"
	ask target_down
	ask no_srq
}

# --- failures -------------------------------------------------------------------------------------

reset_some() {
	local i
	for ((i = 0; i < 3; i++)); do
		nvme reset "/dev/$(controllers)" || return
		sleep 1
	done
	wait_for 20 states live
}

short_flaps() {
	local i
	for ((i = 0; i < 4; i++)); do
		ask flap || return
		sleep 0.7
	done
	wait_for 20 states live
}

# given_up COMMAND... : a failure so long that the connection is given up, and comes back
given_up() {
	local status
	"$@" &
	wait_for 20 some_state connecting
	status=$?
	wait $! || return
	[ $status -eq 0 ] || { echo "the connection was not given up"; return 1; }
	wait_for 40 states live
}

# and_back ACTION : what the target does ends the connection, which comes back
and_back() { ask "$1" && wait_for 40 states live; }

test_recovery() {
	local d
	serve "recovery" target_ram
	connected "recovery" || return
	check "recovery: data is written" 60 put_data "$d"
	check "keep-alive lost without I/O" 60 given_up ask target_idle_outage
	check "keep-alive lost without I/O: data is as before" 60 same_data "$d"
	under_io "reset" 6 "$d" reset_some
	under_io "short link failures" 8 "$d" short_flaps
	under_io "keep-alive lost" 14 "$d" given_up ask outage
	# in one kernel it is the same link
	[ -z "${TWO_MACHINES:-}" ] || under_io "link of the initiator down" 14 "$d" given_up outage
	under_io "target module removed" 10 "$d" and_back target_again
	under_io "target's device removed" 10 "$d" and_back target_device_again
	check "recovery: fio with verify" 60 fio_mixed "$d"
	leave "recovery"
	ask target_down
}

no_controllers() { [ -z "$(controllers)" ]; }
not_running() { ! kill -0 "$1"; }

# The initiator gives its controllers up for good when their device goes, and so there are errors. But nothing hangs, and
# what was written is there.
test_initiator_device() {
	local d fio name="initiator's only device removed"
	serve "$name" target_ram
	connected "$name" || return
	check "$name: data is written" 60 put_data "$d"
	fio_verify "$d" --bs=64k --offset=64m --size=64m --loops=1000 >"$TMP/under" 2>&1 &
	fio=$!
	sleep $((2 * SLOW))
	check "$name: it goes under I/O" 60 rdma link del rsi0
	check "$name: so do the controllers" 60 wait_for 20 no_controllers
	wait_for 60 not_running $fio
	result $? "$name: fio ends"
	! wait $fio
	result $? "$name: fio has seen errors"
	check "$name: made again" 30 device_up rsi0 "${I_NETDEVS[0]}" "$INI"
	connected "$name, again" || return
	check "$name: data is as before" 60 same_data "$d"
	check "$name: fio with verify" 60 fio_mixed "$d"
	leave "$name"
	ask target_down
}

# --- two paths ------------------------------------------------------------------------------------

has_sent() { [ "$(sent "$1")" -gt "$2" ]; }

one_path_down() {
	local status=0
	ask second_link_down || return
	wait_for 30 some_state connecting || { echo "no path was given up"; status=1; }
	wait_for 20 has_sent rsi0 $(($(sent rsi0) + 500)) || { echo "I/O does not go on"; status=1; }
	ask second_link_up || return
	wait_for 40 states live && return $status
}

one_device_again() {
	limit 30 rdma link del rsi1 || return
	sleep 1
	[ "$(controllers | wc -l)" = 1 ] || { echo "controllers: $(controllers)"; return 1; }
	wait_for 20 has_sent rsi0 $(($(sent rsi0) + 500)) || { echo "I/O does not go on"; return 1; }
	device_up rsi1 "${I_NETDEVS[1]}" "${INIS[1]}" && connect "${TGTS[1]}" || return
	wait_for 20 states live
}

test_multipath() {
	local d
	[ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = Y ] || {
		ktap_skip "multipath" "not in this kernel"
		return
	}
	[ ${#TGTS[@]} -gt 1 ] || { ktap_skip "multipath" "there is one link"; return; }
	serve "multipath" target_ram
	serve "multipath, second" target_second_port
	connected "multipath" || return
	check "multipath, second: connect" 60 connect "${TGTS[1]}"
	echo round-robin >"$(dirname /sys/class/nvme-subsystem/*/iopolicy)/iopolicy"
	check "multipath: fio with verify" 60 fio_mixed "$d"
	has_sent rsi0 500 && has_sent rsi1 500
	result $? "multipath: both are used"
	under_io "multipath, a link taken down" 12 "$d" one_path_down
	under_io "multipath, a device of the initiator removed" 8 "$d" one_device_again
	check "multipath: fio with verify, once more" 60 fio_mixed "$d"
	leave "multipath"
	ask target_down
}
