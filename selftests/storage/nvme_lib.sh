# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Target and initiator of NVMe over RDMA. Sourced, never run, after lib.sh.

NQN=nqn.2026-01.test:sroce
T=$CONFIGFS/nvmet
target_modules="nvmet-rdma null_blk" target_programs=
initiator_modules="nvme-rdma" initiator_programs="nvme fio mkfs.ext4"

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

target_up() { # DEVICE
	subsystem $NQN "$1" && port 1 $TGT $NQN
}

# The module goes, and with it whatever is connected
target_again() {
	port_del 1
	modprobe -r nvmet-rdma || return
	sleep 2
	modprobe nvmet-rdma && port 1 $TGT $NQN
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
initiator_down() { disconnect; }

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
