#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Unreliable connections, shared receive queues and extended reliable connections, by a program of our own: on one
# device, and between two hosts.
. "$(dirname "$0")/lib.sh"

TRANSPORTS=$(program transports) || bail "transports was not built"

devices_up 9000
program_verdicts "one device" 120 in_ns $A "$TRANSPORTS" -d $DEV_A -i $IP_A
program_verdicts "two hosts" 120 "$TRANSPORTS" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
ktap_end
