#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# An unprivileged process sends RoCE packets from an ordinary UDP socket, in the name of another process's queue
# pair on the same host. On the wire nothing tells the two apart, so they must not get there. Nor is it told which
# numbers it would have to write into them. Then one that has the device, and connects a queue pair of its own to
# somebody else's peer, knowing all its numbers: on one host that peer's sroce knows better; between two hosts
# nothing does, and what is shown is how far that goes.
. "$(dirname "$0")/lib.sh"

FORGE=$(program forge) && FOREIGN=$(program foreign) || bail "forge or foreign was not built"
if [ "$DRIVER" != sroce ]; then
	ktap_skip "forge" "$DRIVER lets everybody"
	ktap_end
fi

NOBODY="setpriv --reuid 65534 --regid 65534 --clear-groups"

# numbers_of COMMAND... : of badpackets_target's queue pair: shown, hidden, or none when it is not there at all
numbers_of() {
	on_a "$@" rdma -dd -j resource show qp link $DEV_A/1 >"$TMP/numbers"
	grep -q badpackets "$TMP/numbers" || { echo none; return; }
	grep -qE '1193046|16777200|0xfffff0|epsn' "$TMP/numbers" && echo shown || echo hidden
}

# try NAME TARGET_IP OUR_IP : from host B at host A
try() {
	local target
	rm -f "$TMP/target"
	ip netns exec $A "$(program badpackets_target)" -d $DEV_A -i "$2" -p "$3" >"$TMP/target" 2>&1 &
	target=$!
	wait_for 10 grep -q ready "$TMP/target"
	[ "$(numbers_of env)" = shown ]
	result $? "$1: an administrator is told what a packet must have"
	# shellcheck disable=SC2086 # a command
	[ "$(numbers_of $NOBODY)" = hidden ]
	result $? "$1: others are not"
	limit 60 ip netns exec $B "$FORGE" -s "$3" -D "$2" -c "$2" >"$TMP/forge" 2>&1
	verdicts "$1" "$TMP/forge"
	wait $target
	result $? "$1: the queue pair's memory is intact"
}

devices_up 9000
try "IPv4" $IP_A $IP_B
try "IPv6" $IP6_A $IP6_B
chmod 666 /dev/infiniband/uverbs*
program_verdicts "foreign" 200 "$FOREIGN" -d $DEV_A -i $IP_A
HELD=1 program_verdicts "foreign" 100 "$FOREIGN" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B $IP6_A $IP6_B
for dev in "$DEV_A" "$DEV_B"; do echo 0 >"/sys/class/infiniband/$dev/ports/1/roce_accl/selective_repeat_en"; done
program_verdicts "foreign" 200 "$FOREIGN" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B $IP6_A $IP6_B
link_del $A $DEV_A && link_del $B $DEV_B
result $? "the devices go"
# nothing is left of it: the port is an ordinary one again
# shellcheck disable=SC2086 # a command
on_b $NOBODY bash -c "echo >/dev/udp/$IP_A/4791"
result $? "without a device anybody may send to the port"
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
