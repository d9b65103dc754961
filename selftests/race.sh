#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Doorbells from several processors while the completion queues are resized and the queue pairs destroyed: on one
# device, and between two hosts. What goes wrong is in the kernel log, which is looked at here, too.
. "$(dirname "$0")/lib.sh"

RACE=$(program race) || bail "race was not built"
if [ "$DRIVER" != sroce ]; then
	ktap_skip "race" "it rings sroce's doorbell"
	ktap_end
fi

less=-s
[ "$SET" = quick ] || less=
devices_up 9000
before=$(splats)
# shellcheck disable=SC2086 # an option or nothing
program_verdicts "one device" 90 in_ns $A "$RACE" -d $DEV_A -i $IP_A $less
# shellcheck disable=SC2086
program_verdicts "two hosts" 90 "$RACE" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B $less
unharmed "$before"
