#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The state machine of queue pairs and every kind of error: on one device, and between two hosts. (The second
# run holds both devices in one process: RDMA devices are visible in all namespaces.)
. "$(dirname "$0")/lib.sh"

QPSTATE=$(program qpstate) || bail "qpstate was not built"

# states NAME COMMAND...
states() {
	local name=$1 status
	shift
	limit 120 "$@" >"$TMP/states" 2>&1
	status=$?
	grep '^# ' "$TMP/states"
	verdicts "$name" "$TMP/states"
	tail -n 1 "$TMP/states" | grep -q ' wrong$'
	result $? "$name: came to its end (status $status)"
	tail -n 1 "$TMP/states" | notes
}

devices_up 9000
states "one device" in_ns $A "$QPSTATE" -d $DEV_A -i $IP_A
states "two hosts" "$QPSTATE" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
ktap_end
