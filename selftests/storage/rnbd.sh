#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# RNBD over RTRS: a block device of the target, mapped on the other end of the link; two paths.
. "$(dirname "$0")/lib.sh"

SESSION=sroce

need rnbd-server rnbd-client
need_program fio mkfs.ext4
CTL=/sys/devices/virtual/rnbd-client/ctl
CLT=/sys/devices/virtual/rtrs-client/$SESSION

map() { # PATH...
	local p line="sessname=$SESSION"
	for p; do line+=" path=$p"; done
	echo "$line device_path=$RAM" >"$CTL"/map_device
}

disk() {
	local d
	for d in /sys/block/rnbd*; do [ -e "$d" ] && echo "/dev/${d##*/}" && return; done
}

unmap() {
	local d
	d=$(disk) || return
	echo normal >"/sys/block/${d#/dev/}/rnbd/unmap_device"
	# shellcheck disable=SC2016 # looked at each time
	wait_for 20 eval '[ -z "$(disk)" ]'
}

paths() { cat "$CLT"/paths/*/state | grep -c "^$1"; }

paths_are() { [ "$(paths connected)" = "$1" ]; }

link_again() {
	ip link set st1 down
	wait_for 60 paths_are 1 || { cat "$CLT"/paths/*/state; return 1; }
	sleep 2
	link_flap 1 0
	wait_for 90 paths_are 2 || { cat "$CLT"/paths/*/state; return 1; }
}

# A path whose device goes is closed, and somebody may have to ask for it again
client_device_again() {
	local p
	device_again rsi1 si1 10.97.1.1 || return
	wait_for 5 paths_are 2
	for p in "$CLT"/paths/*; do
		[ "$(cat "$p/state")" = connected ] || { echo "$p: $(cat "$p/state")"; echo 1 >"$p/reconnect"; }
	done
	wait_for 60 paths_are 2 || { cat "$CLT"/paths/*/state; return 1; }
}

protocol_down() {
	unmap
	rmmod rnbd-client rtrs-client rnbd-server rtrs-server
	ram_disk_del sram0
}

links_up 2
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
check "one path: map" 60 map "ip:$INI@ip:$TGT"
d=$(wait_disk disk) || bail "no disk"
disk_checks "one path" "$d"
under_io "one path, short link failure" 6 "$d" link_flap 0 1
check "one path: unmap" 30 unmap
check "two paths: map" 60 map "ip:$INI@ip:$TGT" "ip:10.97.1.1@ip:10.97.1.2"
d=$(wait_disk disk) || bail "no disk"
wait_for 20 paths_are 2
result $? "two paths are connected"
echo round-robin >$CLT/mpath_policy
check "two paths: fio with verify, 4 KiB to 1 MiB" 120 fio_mixed "$d"
under_io "two paths, a link taken down" 20 "$d" link_again
under_io "two paths, a device of the client removed" 15 "$d" client_device_again
check "two paths: unmap" 30 unmap
check "client modules unload" 60 rmmod rnbd-client rtrs-client
check "server modules unload" 60 rmmod rnbd-server rtrs-server
ktap_end
