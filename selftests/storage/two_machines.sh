#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# two_machines.sh PROTOCOL NUMBER NETDEV OUR_IP PEER_IP [NETDEV OUR_IP PEER_IP] : run at the same time on two machines
# with a link between them, or two: number 1 has the target, number 2 uses it, and says what is to happen. Both print
# results.
protocol=${1:?two_machines.sh PROTOCOL NUMBER NETDEV OUR_IP PEER_IP [NETDEV OUR_IP PEER_IP]} number=$2
shift 2
NETDEVS=("$1" ${4:+"$4"}) OURS=("$2" ${5:+"$5"}) PEERS=("$3" ${6:+"$6"})
case $number in
1) side=target DEV=rst T_NETDEVS=("${NETDEVS[@]}") TGTS=("${OURS[@]}") INIS=("${PEERS[@]}") ;;
2) side=initiator DEV=rsi I_NETDEVS=("${NETDEVS[@]}") TGTS=("${PEERS[@]}") INIS=("${OURS[@]}") ;;
esac
TWO_MACHINES=1
. "$(dirname "$0")/lib.sh"
# What no kernel of Debian's has can be seen in the UML lab only
case $protocol in
rnbd)
	modprobe -nq rnbd-server || why="rnbd-server, rnbd-client: this kernel does not have the modules"
	;;
smb)
	modinfo -F depends ksmbd cifs 2>/dev/null | grep -q rdma || why="ksmbd, cifs: built without SMB Direct, or not at all"
	;;
esac
case $protocol in
rnbd | smb)
	ktap_skip "$protocol" "${why:-not written for two machines}"
	ktap_end
	;;
esac
# shellcheck source=/dev/null
. "$SELF/storage/${protocol}_lib.sh"
PORT_OF_MEETING=18620
MEET=$(program meet) || bail "meet was not built"

# --- two machines ---------------------------------------------------------------------------------

# tell NUMBER : wait for the other machine; its number. (What is done between two of these may take long.)
tell() {
	if [ "$side" = target ]; then
		"$MEET" $PORT_OF_MEETING 3600 "$1"
	else
		"$MEET" $PORT_OF_MEETING 600 "$1" "$TGT"
	fi
}

ACTIONS=(end flap outage silence target_again "${target_actions[@]}")

# The target does what it is asked for
obey() {
	local action status
	while action=$(tell 0); do
		action=${ACTIONS[action]}
		[ "$action" != end ] || return 0
		"$action" >"$TMP/action" 2>&1
		status=$?
		[ "$status" -eq 0 ] || note "$action: status $status"
		notes <"$TMP/action"
		tell "$status" >/dev/null || return
	done
	return 1
}

# ask ACTION : the initiator has the target do it
ask() {
	local i status
	for i in "${!ACTIONS[@]}"; do
		[ "${ACTIONS[i]}" = "$1" ] || continue
		tell "$i" >/dev/null || return
		[ "$1" != end ] || return 0
		status=$(tell 0) || return
		return "$status"
	done
	return 1
}

# Of a link that fails the other side only sees that nothing arrives
link_down() { ip link set "${NETDEVS[$1]}" down; }
link_up() { ip link set "${NETDEVS[$1]}" up; }

# Nothing arrives from the target for so long. Its link does not go, and its neighbour (neighbour_known) neither.
silence() {
	tc qdisc replace dev "${NETDEVS[0]}" root netem loss 100% || return
	sleep $((8 * SLOW))
	tc qdisc del dev "${NETDEVS[0]}" root
}

neighbour_known() { ip neigh change "${PEERS[0]}" dev "${NETDEVS[0]}" nud permanent; }

storage_finish() {
	[ "$side" = target ] || [ -n "${ended:-}" ] || ask end >/dev/null 2>&1
	{
		side_down "$side"
		ram_disk_del sram0
		devices_go
	} >/dev/null 2>&1
	rm -rf "$TMP"
}

# The initiator's own device goes and comes back; then the command must succeed in time
our_device_again() {
	device_again rsi0 "${NETDEVS[0]}" "$INI" || return
	[ $# -eq 0 ] || wait_for 60 "$@"
}

# --- what the initiator does ----------------------------------------------------------------------

# after ACTION COMMAND... : what the target does ends the connection; then the command must succeed in time
after() { ask "$1" && wait_for 90 "${@:2}"; }

with_nvme() {
	# shellcheck source=/dev/null
	. "$SELF/storage/nvme_cases.sh"
	nvme_cases
}

with_soak() { soak; }

with_iser() {
	session
	disk_checks "disk" "$d"
	under_io "short link failure" 8 "$d" ask flap
	# iser.sh says why the link must not be taken down for long
	check "the neighbour is known for good" 10 neighbour_known
	under_io "silence on the link" 20 "$d" after silence session_up
	under_io "target restarted" 15 "$d" after target_again session_up
	under_io "our device removed" 15 "$d" our_device_again session_up
	check "logout" 60 node --logout
	iscsiadm -k 0
}

with_srp() {
	check "login" 60 login "queue_size=64"
	d=$(wait_disk disk) || bail "no disk"
	disk_checks "disk" "$d"
	under_io "short link failure" 8 "$d" ask flap
	under_io "link failure" 20 "$d" after outage running
	check "data is written" 60 put_data "$d"
	check "our device removed and made again" 60 our_device_again no_host
	check "login again" 60 login_again "queue_size=64"
	d=$(wait_disk disk) || bail "no disk"
	check "data is as before" 60 same_data "$d"
	check "fio with verify, 4 KiB to 1 MiB, once more" 120 fio_mixed "$d"
	check "logout" 60 logout
}

with_nfs() { mounted_each nfs_failures; }
nfs_failures() { # NAME FILE
	under_io "$1: short link failure" 8 "$2" ask flap
	under_io "$1: server restarted" 15 "$2" ask target_again
	excuse=einval under_io "$1: our device removed" 10 "$2" our_device_again
	check "$1: fio with verify, 4 KiB to 1 MiB, once more" 180 fio_mixed "$2"
}

# no_tools PACKAGE PROGRAM... : programs of others, which we do without
no_tools() {
	type -P "$2" >/dev/null || ktap_skip "${*:2}" "$1: not installed (Debian 13 has no such package)"
}

with_rds() {
	talk_all
	no_tools rds-tools rds-ping rds-stress
	check "the server is restarted" 60 ask target_again
	check "our device removed and made again" 60 our_device_again
	check "a stream of messages both ways, once more" 60 talk stream 1000
}

with_smc() {
	talk_all
	no_tools smc-tools smc_run
	check "the server is restarted" 60 ask target_again
	check "20 MB to and fro, once more" 90 smc_talk run "$INI" "$TGT" 20000000
	fallbacks_at_most 0
	check "our device removed and made again" 60 our_device_again
	talk_again
}

with_9p() { mounted_each; }

# --- both -----------------------------------------------------------------------------------------

# What must be there on each side before the first connection
devices() {
	local n
	for n in "${!NETDEVS[@]}"; do
		device_up "$DEV$n" "${NETDEVS[n]}" "${OURS[n]}" && wait_for 10 ping -q -c 1 -W 2 "${PEERS[n]}" || return
	done
}

devices_go() {
	local n status=0
	for n in "${!NETDEVS[@]}"; do rdma link del "$DEV$n" || status=1; done
	return "$status"
}

physical_network() { [ "$protocol" != smc ] || smc_talk setup "${NETDEVS[0]}" "${DEV}"0; }

target_ready() {
	local disk
	case $protocol in
	rds | smc) target_up ;;
	# the initiator asks for one target after the other
	nvme | soak) ram_disk_ready ;;
	*)
		disk=$(ram_disk sram0 512) || return
		target_up "$disk"
		;;
	esac
}

initiator_ready() { :; }

ready() { devices && physical_network && "${side}_ready"; }

target_side() {
	obey
	result $? "the initiator came to its end"
	# one: see talk_again
	[ "$protocol" != smc ] || fallbacks_at_most 1
	check "target goes" 60 target_down
}

initiator_side() {
	"with_$protocol"
	ask end
	ended=1
	# a device counts from zero when it has been made again
	[ "$(sent rsi0)" -gt 1000 ]
	result $? "it went over the device ($(sent rsi0) packets)"
}

note "$protocol, $side: $(uname -r)"
ktap_prefix="$protocol, $side: "
driver_load
lacks=$(missing "$side")
they=$(tell "$([ -n "$lacks" ] && echo 1 || echo 0)") || bail "the other machine is not there"
if [ -n "$lacks" ] || [ "$they" != 0 ]; then
	ended=1
	ktap_skip "${lacks%%: *}" "${lacks:-the other machine cannot}"
	ktap_end
fi
check "device and $side" 60 ready
status=$?
they=$(tell $status) || bail "the other machine is not there"
if [ $status -ne 0 ] || [ "$they" != 0 ]; then
	ended=1
	note "the other machine: $they"
	ktap_end
fi
"${side}_side"
list=${side}_modules
# the first one is what uses the device
module=${!list%% *}
# RDS may not go before the connections of the device have (storage.md)
if [ "$protocol" = rds ]; then
	check "the device goes" 60 devices_go
	sleep $((2 * SLOW))
	check "$module unloads" 60 modprobe -r "$module"
else
	[ "$module" = null_blk ] || check "$module unloads" 60 modprobe -r "$module"
	check "the device goes" 60 devices_go
fi
driver_unload
result $? "sroce unloads"
ktap_end
