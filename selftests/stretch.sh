#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# For how long bottom halves are off at a stretch in the worst that a process can ask for: large messages, reads and
# long scatter lists of many queue pairs of one host, and between two. The bytes that are moved meanwhile have a
# limit, on any machine; the time is only told.
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) || bail "the test programs were not built"
PARAMETERS=/sys/module/sroce/parameters
PORT=18800
if [ "$DRIVER" != sroce ]; then
	ktap_skip "stretch" "the parameters are sroce's"
	ktap_end
fi

# What a turn may have, and what the half of a queue pair adds that began just before its end; and when packets
# arrive, as much again
MOST=$((5 << 20))
MOST_FAR=$((10 << 20))

listens() { in_ns "$1" ss -ltn | grep -q ":$2 "; }

# perftest NAMESPACE DEVICE IP TOOL OPTIONS... : with host A as the client
perftest() {
	local ns=$1 dev=$2 ip=$3 tool=$4 status
	shift 4
	PORT=$((PORT + 1))
	set -- "$@" -F -p "$PORT"
	limit 60 ip netns exec "$ns" "$tool" -d "$dev" -x "$(gid_index "$ns" "$dev" "$ip")" "$@" >"$TMP/server" 2>&1 &
	wait_for 10 listens "$ns" "$PORT"
	limit 60 ip netns exec "$A" "$tool" -d "$DEV_A" -x "$GID" "$@" "$ip" >"$TMP/client" 2>&1
	status=$?
	wait $!
	[ "$status" -eq 0 ] || notes <"$TMP/client"
	return "$status"
}

local_perftest() { perftest "$A" "$DEV_A" "$IP_A" "$@"; }
far_perftest() { perftest "$B" "$DEV_B" "$IP_B" "$@"; }

# Lists of 32 elements, mostly
local_lists() {
	run_pair 60 "$A" "$VERIFY -d $DEV_A -i $IP_A -q 2 -m 2097152" \
		"$A" "$VERIFY -d $DEV_A -i $IP_A -q 2 -m 2097152 -n 10 -b 32 $IP_A"
}

# measure NAME COMMAND... : sets bytes
measure() {
	local name=$1 status
	shift
	echo 1 >$PARAMETERS/largest_turn
	"$@"
	status=$?
	bytes=$(cat $PARAMETERS/largest_turn)
	note "$name: at most $bytes bytes, or what counts as such, in $(cat $PARAMETERS/longest_turn) us"
	result $status "$name: it works"
}

# bounded BYTES NAME COMMAND...
bounded() {
	local most=$1
	shift
	measure "$@"
	[ "$bytes" -gt 65536 ] && [ "$bytes" -le "$most" ]
	result $? "$1: not more than $most bytes at a stretch"
}

devices_up 9000
[ -w $PARAMETERS/largest_turn ] || bail "the module does not tell"
GID=$(gid_index $A $DEV_A $IP_A)
bounded $MOST "large writes on one host" local_perftest ib_write_bw -s 4194304 -q 8 -n 20
bounded $MOST "large reads on one host" local_perftest ib_read_bw -s 4194304 -q 8 -n 20
bounded $MOST "large sends on one host" local_perftest ib_send_bw -s 4194304 -q 8 -n 20
bounded $MOST "small writes on one host" local_perftest ib_write_bw -s 4096 -q 16 -n 2000
bounded $MOST "long lists on one host" local_lists
bounded $MOST_FAR "large writes between two" far_perftest ib_write_bw -s 4194304 -q 8 -n 20
bounded $MOST_FAR "large reads between two" far_perftest ib_read_bw -s 4194304 -q 8 -n 20
bounded $MOST_FAR "small writes between two" far_perftest ib_write_bw -s 4096 -q 16 -n 2000
echo 0 >$PARAMETERS/largest_turn
# What waits is not overtaken; but a sender that the scheduler moves overtakes itself in the stack now and then
note "$(($(counter $A $DEV_A out_of_sequence) + $(counter $B $DEV_B out_of_sequence))) packets out of sequence"
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
