#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The state machine of queue pairs and every kind of error: on one device, and between two hosts. (The second
# run holds both devices in one process: RDMA devices are visible in all namespaces.)
. "$(dirname "$0")/lib.sh"

QPSTATE=$(program qpstate) || bail "qpstate was not built"

devices_up 9000
program_verdicts "one device" 120 in_ns $A "$QPSTATE" -d $DEV_A -i $IP_A
program_verdicts "two hosts" 120 "$QPSTATE" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
ktap_end
