#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# For how long bottom halves are off at a stretch in the worst that a process can ask for: large messages, reads and
# long scatter lists of many queue pairs of one host, and between two, raw packets that are copied for many flows, and
# timers of thousands of queue pairs.
# The bytes that are moved meanwhile have a limit, on any machine. So has the time, in the full set, where the kernel's
# trace events tell (bh_off.c, soon_on() of bh_off.sh); what the driver itself says of it is only told.
. "$(dirname "$0")/lib.sh"
. "$SELF/bh_off.sh"

VERIFY=$(program verify) && TORRENT=$(program torrent) && UNREADY=$(program unready) && WOKEN=$(program woken) ||
	bail "the test programs were not built"
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
# The quick set has no time for that
TIMED=
[ "$SET" = quick ] || TIMED=1
# Long enough for some thousand stretches
N=$((TIMED ? 80 : 20))

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

# Completion queues of 256 queue pairs on a channel that 900 epoll sets watch
many_woken() {
	limit 60 "$WOKEN" -d "$DEV_A" -i "$IP_A" >"$TMP/woken" 2>&1 && return
	notes <"$TMP/woken"
	return 1
}

# The best of three. Seen were 8 to 16 ms, and 23 on a machine that had four times its load; hundreds were handlers that nobody
# timed. The full set runs this alone.
handlers_end() {
	local try us='' most=$(((TIMED ? 20000 : 50000) * SLOW))
	for try in 1 2 3; do
		echo 1 >$PARAMETERS/longest_turn
		many_woken || break
		us=$(cat $PARAMETERS/longest_turn)
		[ "$us" -le $most ] && break
	done
	[ -n "$us" ] && [ "$us" -gt 0 ] && [ "$us" -le $most ]
	result $? "events that wake many: handlers end with their turn (${us:-unknown} us, in attempt $try)"
}

# copies FLOWS OPTIONS... : raw packets to as many flows
copies() {
	local flows=$1
	shift
	limit 60 "$TORRENT" -d "$DEV_A" -i "$IP_A" -D "$DEV_B" -I "$IP_B" -f "$flows" -t 2 "$@" >"$TMP/torrent" 2>&1 && return
	notes <"$TMP/torrent"
	return 1
}

# unready CONNECTIONS : each asks again and again whether there is a receive
unready() {
	limit 120 "$UNREADY" -d "$DEV_A" -i "$IP_A" -n "$1" -t 2 >"$TMP/unready" 2>&1 && return
	notes <"$TMP/unready"
	return 1
}

# The same when all of them ask: to make 4000 connections and to destroy them under that load takes a minute and more,
# and more events of the kernel's than it keeps
unready_soon_on() {
	local pid
	"$UNREADY" -d "$DEV_A" -i "$IP_A" -n 4000 -t 600 >"$TMP/unready" 2>&1 &
	pid=$!
	wait_for 120 grep -q '^# all sent' "$TMP/unready" && soon_on "many that wait for a receive on one host" sleep 2
	result $? "many that wait for a receive on one host: they asked meanwhile"
	kill "$pid"
	wait "$pid" 2>"$TMP/killed"
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

# bounded_bytes BYTES NAME COMMAND...
bounded_bytes() {
	local most=$1
	shift
	measure "$@"
	[ "$bytes" -gt 4096 ] && [ "$bytes" -le "$most" ]
	result $? "$1: not more than $most bytes at a stretch"
}

# bounded BYTES NAME COMMAND... : and for how long
bounded() {
	bounded_bytes "$@"
	shift
	[ -z "$TIMED" ] || soon_on "$@"
}

# User mode Linux has its memory from the machine below piece by piece, when it is used first: 2 us and more for each
# page, which look like work of who happens to use it. So all of it is used once.
touch_memory() {
	local kib
	kib=$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo)
	mkdir "$TMP/memory"
	mount -t tmpfs -o size=$((kib * 9 / 10))k none "$TMP/memory" || return
	dd if=/dev/zero of="$TMP/memory/all" bs=1M status=none 2>"$TMP/full"
	umount "$TMP/memory"
}

[ -z "$TIMED" ] || [ ! -e /proc/exitcode ] || touch_memory
devices_up 9000
[ -w $PARAMETERS/largest_turn ] || bail "the module does not tell"
GID=$(gid_index $A $DEV_A $IP_A)
bounded $MOST "large writes on one host" local_perftest ib_write_bw -s 4194304 -q 8 -n $N
bounded $MOST "large reads on one host" local_perftest ib_read_bw -s 4194304 -q 8 -n $N
bounded $MOST "large sends on one host" local_perftest ib_send_bw -s 4194304 -q 8 -n $N
bounded $MOST "small writes on one host" local_perftest ib_write_bw -s 4096 -q 16 -n $((N * 100))
bounded $MOST "long lists on one host" local_lists
handlers_end
bounded_bytes $MOST "many that wait for a receive on one host" unready $((TIMED ? 1500 : 500))
[ -z "$TIMED" ] || unready_soon_on
bounded $MOST_FAR "large writes between two" far_perftest ib_write_bw -s 4194304 -q 8 -n $N
bounded $MOST_FAR "large reads between two" far_perftest ib_read_bw -s 4194304 -q 8 -n $N
bounded $MOST_FAR "small writes between two" far_perftest ib_write_bw -s 4096 -q 16 -n $((N * 100))
bounded $MOST_FAR "parts of raw packets for 12 flows" copies 12 -m 64
bounded $MOST_FAR "raw packets of 9000 bytes for 48 flows" copies 48 -l 9000
if [ -n "$TIMED" ]; then
	# without anybody else, what bh_off itself does, and what the machine below does to that
	soon_on "nothing" sleep 2
	bounded $MOST_FAR "parts of raw packets for one flow" copies 1 -m 64
	bounded $MOST_FAR "parts of raw packets for 48 flows" copies 48 -m 1448
	bounded $MOST_FAR "short raw packets for 48 flows" copies 48 -l 60
	bounded $MOST_FAR "raw packets that 55 flows are not for" copies 1 -l 60 -s 55
fi
echo 0 >$PARAMETERS/largest_turn
# What waits is not overtaken; but a sender that the scheduler moves overtakes itself in the stack now and then
note "$(($(counter $A $DEV_A out_of_sequence) + $(counter $B $DEV_B out_of_sequence))) packets out of sequence"
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
