# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# Target and initiator of NVMe over RDMA. Sourced, never run, after lib.sh.

NQN=nqn.2026-01.test:sroce
T=$CONFIGFS/nvmet
target_modules="nvmet-rdma null_blk" target_programs=
initiator_modules="nvme-rdma" initiator_programs="nvme fio mkfs.ext4"
target_actions=(target_down target_ram target_file target_inline_0 target_inline_16384 target_interrupts target_srq no_srq
	target_second_port target_device_again target_idle_outage second_link_down second_link_up)

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

target_up() { # DEVICE [ATTRIBUTE=VALUE...]
	subsystem $NQN "$1" && port 1 "$TGT" $NQN "${@:2}"
}

ram_disk_ready() { RAM=$(ram_disk sram0 512); }

# With each kind of disk, and with data of a write in the command itself or fetched by RDMA READ
target_ram() { target_up "$RAM"; }
target_inline_0() { target_up "$RAM" param_inline_data_size=0; }
target_inline_16384() { target_up "$RAM" param_inline_data_size=16384; }
target_file() { truncate -s 256M "$TMP/disk" && target_up "$TMP/disk"; }
# it completes in hard interrupts, and the answers are posted from there
target_interrupts() {
	local dev
	dev=$(ram_disk sram1 256 irqmode=2 completion_nsec=20000) && target_up "$dev"
}
# receive work requests that all connections share
target_srq() {
	modprobe -r nvmet-rdma && modprobe nvmet-rdma use_srq=1 && [ "$(cat /sys/module/nvmet_rdma/parameters/use_srq)" = Y ] &&
		target_up "$RAM"
}
no_srq() { modprobe -r nvmet-rdma && modprobe nvmet-rdma; }

target_second_port() { port 2 "${TGTS[1]}" $NQN; }

# Its listener goes with the device
target_device_again() {
	device_again rst0 "${T_NETDEVS[0]}" "$TGT" || return
	port_del 1
	port 1 "$TGT" $NQN
}

expired() { dmesg | grep -c 'keep-alive timer .* expired'; }

# Nothing to send: it is the keep-alive timer that finds the initiator gone
target_idle_outage() {
	local before
	before=$(expired)
	outage
	[ "$(expired)" -gt "$before" ] || { echo "no keep-alive timer has expired"; return 1; }
}

# The module goes, and with it whatever is connected
target_again() {
	port_del 1
	modprobe -r nvmet-rdma || return
	sleep 2
	modprobe nvmet-rdma && port 1 "$TGT" $NQN
}

target_down() {
	local p s
	for p in "$T/ports/"*; do [ -d "$p" ] && port_del "${p##*/}"; done
	for s in "$T/subsystems/"*; do [ -d "$s" ] && subsystem_del "${s##*/}"; done
	[ ! -d "$CONFIGFS/nullb/sram1" ] || ram_disk_del sram1
	rm -f "$TMP/disk"
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
