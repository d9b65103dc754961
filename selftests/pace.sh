#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Rate limits of queue pairs: on one device, and between two hosts.
. "$(dirname "$0")/lib.sh"

PACE=$(program pace) || bail "pace was not built"

devices_up 1500
program_verdicts "one device" 120 in_ns $A "$PACE" -d $DEV_A -i $IP_A
program_verdicts "two hosts" 120 "$PACE" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
ktap_end
