#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A receiver on the same host that posts a receive now and then, while a thousand messages wait for it in their sender's
# memory. Nobody waits until it has come to them: not who destroys, resets or deregisters, and not the device.
. "$(dirname "$0")/lib.sh"

TRICKLE=$(program trickle) || bail "trickle was not built"
exec 2>"$TMP/jobs"

# removed NAME WAY... : the device goes while the messages wait
removed() {
	local name=$1 start holder
	shift
	: >"$TMP/hold"
	ip netns exec $A "$TRICKLE" -d $DEV_A -i $IP_A hold >"$TMP/hold" 2>&1 &
	holder=$!
	wait_for 20 grep -q '^waits' "$TMP/hold" || notes <"$TMP/hold"
	start=$SECONDS
	limit 5 "$@"
	result $? "$name ($((SECONDS - start)) s)"
	kill -9 $holder
	wait_for 5 eval "! kill -0 $holder"
	result $? "$name: the process ends"
	devices_up 9000
}

devices_up 9000
program_verdicts "one host" 120 in_ns $A "$TRICKLE" -d $DEV_A -i $IP_A
removed "the device is removed" ip netns exec $A rdma link del $DEV_A
removed "its netdev is removed" ip -n $A link del veth0
ktap_end
