# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# The load "nvme": the kernel's NVMe target and initiator, over sroce, rdma_rxe and TCP. Sourced by guest.
#
# They live in the first network namespace, so both ends are there, with a veth for each contender (one-namespace.sh).
# The disk is one that forgets what is written and does not look at what is read: what is measured is the way to it.

. /sroce/tools/bench/one-namespace.sh

NVMET=/sys/kernel/config/nvmet

# nvme_net NAME : number of its network, 10.NUMBER.0.0
nvme_net() { case $1 in sroce) echo 60 ;; rxe) echo 61 ;; tcp) echo 62 ;; esac; }

nvme_link() {
	local net
	net=$(nvme_net "$1")
	one_namespace_pair "$net" 9000 "ni$net" "nt$net"
}

# sroce and rdma_rxe take the same UDP port: one after the other
nvme_devices() { # NAME
	local net
	net=$(nvme_net "$1")
	[ "$1" = tcp ] || { lab_link "$1" "nvme_i$net" "ni$net" && lab_link "$1" "nvme_t$net" "nt$net"; }
}

nvme_devices_del() {
	local net
	net=$(nvme_net "$1")
	[ "$1" = tcp ] || { rdma link del "nvme_i$net"; rdma link del "nvme_t$net"; }
}

# nvme_port NUMBER TRANSPORT ADDRESS : where the one subsystem can be connected to
nvme_port() {
	local dir=$NVMET/ports/$1
	mkdir "$dir" && echo "$2" >"$dir/addr_trtype" && echo ipv4 >"$dir/addr_adrfam" &&
		echo "$3" >"$dir/addr_traddr" && echo 4420 >"$dir/addr_trsvcid" || return
	ln -s $NVMET/subsystems/bench "$dir/subsystems/bench"
}

nvme_port_del() { # NUMBER
	rm "$NVMET/ports/$1/subsystems/bench"
	rmdir "$NVMET/ports/$1"
}

# nvme_transport NAME
nvme_transport() { [ "$1" = tcp ] && echo tcp || echo rdma; }

# nvme_target NAME : a port of the one subsystem
nvme_target() {
	local net
	net=$(nvme_net "$1")
	nvme_port "$net" "$(nvme_transport "$1")" "10.$net.0.2"
}

nvme_target_del() { nvme_port_del "$(nvme_net "$1")"; }

# nvme_subsystem : a disk that does nothing, as the one subsystem
nvme_subsystem() {
	modprobe null_blk nr_devices=1 gb=4 bs=4096 irqmode=0 || return
	mkdir $NVMET/subsystems/bench && echo 1 >$NVMET/subsystems/bench/attr_allow_any_host || return
	mkdir $NVMET/subsystems/bench/namespaces/1 || return
	echo -n /dev/nullb0 >$NVMET/subsystems/bench/namespaces/1/device_path
	echo 1 >$NVMET/subsystems/bench/namespaces/1/enable
}

nvme_setup() {
	local name
	modprobe -a nvme_rdma nvme_tcp nvmet_rdma nvmet_tcp || return
	for name in sroce rxe tcp; do nvme_link $name || return; done
	one_namespace_routes && nvme_subsystem
}

nvme_disk() {
	local tries disk
	for ((tries = 0; tries < 100; tries++)); do
		for disk in /sys/class/nvme-subsystem/*/nvme*n1; do
			disk=/dev/${disk##*/}
			[[ $disk != *c*n* ]] && [ -b "$disk" ] && echo "$disk" && return
		done
		sleep 0.1
	done
	return 1
}

# nvme_fio LOAD NAME DISK METRIC SIZE DEPTH RW
# shellcheck disable=SC2154 # $seconds and $round are guest's
nvme_fio() {
	local load=$1 name=$2 disk=$3 metric=$4 size=$5 depth=$6 rw=$7 field pid v lead
	field=7
	case $rw in *write) field=48 ;; esac
	# terse output: bandwidth in KiB/s, then operations per second
	[ "$metric" = kIOPS ] && field=$((field + 1))
	taskset -c 0 timeout 60 fio --name=t --filename="$disk" --ioengine=libaio --direct=1 --rw="$rw" --bs="$size" \
		--iodepth="$depth" --size=1g --time_based --ramp_time=1 --runtime="$seconds" --output-format=terse >/tmp/fio 2>/tmp/client.log &
	pid=$!
	# after the ramp; for steady
	# shellcheck disable=SC2034
	lead=$(awk "BEGIN { print 1.3 + $seconds / 4 }")
	steady "$pid"
	wait $pid
	v=$(cut -d';' -f$field /tmp/fio)
	[ -n "$v" ] && [ "$v" != 0 ] || { lost "$load $name"; return; }
	case $metric in
	kIOPS) v=$(awk "BEGIN { print $v / 1000 }") ;;
	MB/s) v=$(awk "BEGIN { print $v * 1024 / 1e6 }") ;;
	esac
	note "$load" "$size" "$name" "$round" "$metric" "$v"
	used "$load" "$size" "$name"
}

# nvme_connect NAME : devices, target and connection
nvme_connect() {
	local name=$1 direct=/dev/null
	[ "$name" != sroce ] || direct=/sys/module/sroce/parameters/direct
	# rdma_cm may miss the answer of a neighbour that it does not know yet
	ping -q -c 1 -I "10.$(nvme_net "$name").0.1" "10.$(nvme_net "$name").0.2" >/dev/null
	nvme_devices "$name" && nvme_target "$name" || lost "nvme $name: no target"
	# over the veth, as the others
	echo N >$direct
	nvme connect -t "$(nvme_transport "$name")" -a "10.$(nvme_net "$name").0.2" -s 4420 -n bench >/tmp/client.log 2>&1
	echo Y >$direct
}

nvme_disconnect() {
	nvme disconnect -n bench >/dev/null
	nvme_target_del "$1"
	sleep 1
	nvme_devices_del "$1"
}

# nvme_case NAME METRIC SIZE DEPTH KIND SUFFIX : reads and writes, over a connection of their own
nvme_case() {
	local name=$1 metric=$2 size=$3 depth=$4 kind=$5 suffix=$6 disk rw
	nvme_connect "$name"
	if disk=$(nvme_disk); then
		for rw in read write; do nvme_fio "nvme-$kind$rw$suffix" "$name" "$disk" "$metric" "$size" "$depth" "$kind$rw"; done
	else
		lost "nvme $name: no disk"
	fi
	nvme_disconnect "$name"
}

measure_nvme() {
	each "sroce rxe tcp" nvme_case kIOPS 4096 1 rand ""
	each "sroce rxe tcp" nvme_case kIOPS 4096 32 rand 32
	each "sroce rxe tcp" nvme_case MB/s 131072 1 "" ""
	each "sroce rxe tcp" nvme_case MB/s 131072 32 "" 32
}
