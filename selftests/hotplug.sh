#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Processors that go off-line and come back under traffic: on one host and between two, with completion events. Nothing
# may be left lying where nobody looks. It wants a machine whose processors can go.
#
# ROUNDS=N (5, with SHORT=1 2; 300 in a full run): how often
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) && VERBS=$(program verbs) || bail "the test programs were not built"
CPU=/sys/devices/system/cpu/cpu1/online
amount ROUNDS "$((SHORT ? 2 : 5))" 300

if ! [ -w $CPU ] || [ "$(cat $CPU)" != 1 ]; then
	ktap_skip "hotplug" "no second processor that can go off-line"
	ktap_end
fi
# What the kernel itself needs first (a processor may not go at the moment)
switch() { wait_for 20 eval "echo $1 >$CPU"; }
hotplug_finish() {
	echo 1 >"$CPU"
	finish
}
trap hotplug_finish EXIT

# traffic NAME NAMESPACE DEVICE IP PORT OPTIONS... : between host A and another, until it is told to end
traffic() {
	local name=$1 ns=$2 dev=$3 ip=$4 port=$5
	shift 5
	ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A -p "$port" -S $((30 * SLOW)) "$@" >"$TMP/$name.server" 2>&1 &
	servers+=($!)
	wait_for 10 eval "on_a ss -ltn | grep -q ':$port '"
	# shellcheck disable=SC2086 # options
	ip netns exec "$ns" "$VERIFY" -d "$dev" -i "$ip" -p "$port" -S $((30 * SLOW)) -t 3600 $VERIFY_OPTIONS "$@" $IP_A \
		>"$TMP/$name.client" 2>&1 &
	clients+=($!)
	names+=("$name")
}

ended() { ! kill -0 "$1" 2>/dev/null; }

# It verifies what is under way, and says so
traffic_end() {
	local i
	for i in "${!clients[@]}"; do
		kill -USR1 "${clients[i]}"
		wait_for 60 ended "${clients[i]}"
		wait_for 20 ended "${servers[i]}"
		kill -9 "${clients[i]}" "${servers[i]}" 2>/dev/null
		wait "${clients[i]}" && wait "${servers[i]}"
		result $? "${names[i]}: every byte and completion is right, and none is missing"
		tail -n 1 "$TMP/${names[i]}.client" | notes
	done 2>/dev/null
}

devices_up 9000
servers=() clients=() names=()
traffic "one host" $A $DEV_A $IP_A 18520
traffic "one host, with events" $A $DEV_A $IP_A 18521 -e
traffic "two hosts" $B $DEV_B $IP_B 18522
traffic "two hosts, with events" $B $DEV_B $IP_B 18523 -e
sleep 1
switched=0
for ((i = 0; i < ROUNDS; i++)); do
	switch 0 || switched=1
	sleep 0.5
	switch 1 || switched=1
	sleep 0.5
done
result $switched "a processor goes and comes, $ROUNDS times"
traffic_end

if [ -z "$SHORT" ]; then
	switch 0
	# Among other things a completion vector for each, this one as well
	program_verdicts "without the processor" 200 "$VERBS" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
	switch 1
fi
pair "a newcomer's transfer works" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
