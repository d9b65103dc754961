#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Memory regions and windows: on one device, and between two hosts.
. "$(dirname "$0")/lib.sh"

MEMORY=$(program memory) || bail "memory was not built"

devices_up 9000
program_verdicts "one device" 120 in_ns $A "$MEMORY" -d $DEV_A -i $IP_A
program_verdicts "two hosts" 120 "$MEMORY" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
ktap_end
