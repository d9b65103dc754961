#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Several pairs of processes on one processor, which interrupt each other wherever the kernel lets them: every byte
# and every completion of each checked. A kernel with PREEMPT_RT lets them nearly everywhere.
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) || bail "verify was not built"
rounds=8
[ "$SET" = full ] && rounds=40
cpu=$(($(nproc) - 1))
common="-m 100000 -T 20 -S $((90 * SLOW)) $VERIFY_OPTIONS"
pairs=0 clients=()

# on_cpu NAMESPACE NICE OUTPUT OPTION... : verify on the one processor
on_cpu() {
	local ns=$1 nice=$2 out=$3
	shift 3
	# shellcheck disable=SC2086 # several options
	limit 200 ip netns exec "$ns" nice -n "$nice" taskset -c $cpu "$VERIFY" $common "$@" >"$TMP/$out" 2>&1
}

# begin_pair NAME NICE NAMESPACE DEVICE IP [OPTIONS] : one more pair, whose client is there
begin_pair() {
	local name=$1 nice=$2 ns=$3 dev=$4 ip=$5
	shift 5
	pairs=$((pairs + 1))
	names[pairs]=$name
	on_cpu $A "$nice" server$pairs -d $DEV_A -i $IP_A -p $((18600 + pairs)) &
	servers[pairs]=$!
	on_cpu "$ns" "$nice" client$pairs -d "$dev" -i "$ip" -p $((18600 + pairs)) -n $rounds "$@" $IP_A &
	clients[pairs]=$!
}

# end_pair NUMBER : wait for both of a pair
end_pair() {
	local status=0
	wait "${clients[$1]}" || { status=1 && kill "${servers[$1]}" 2>/dev/null; }
	wait "${servers[$1]}" || status=1
	[ $status -eq 0 ] || notes 6 <"$TMP/server$1"
	notes 3 <"$TMP/client$1"
	result $status "${names[$1]}"
}

devices_up 9000
begin_pair "two hosts" 0 $B $DEV_B $IP_B
begin_pair "one device" 0 $A $DEV_A $IP_A
begin_pair "one device, events" 0 $A $DEV_A $IP_A -e
begin_pair "two hosts, less important, events" 5 $B $DEV_B $IP_B -e
begin_pair "one device, more important, events" -5 $A $DEV_A $IP_A -e
for ((n = 1; n <= pairs; n++)); do end_pair "$n"; done
ktap_end
