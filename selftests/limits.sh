#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What a process may have of a device, and where that counts: pinned memory and its limit, numbers of objects, the
# memory cgroup.
. "$(dirname "$0")/lib.sh"

LIMITS=$(program limits) || bail "limits was not built"
if [ "$DRIVER" != sroce ]; then
	ktap_skip "limits" "it speaks sroce's ABI only"
	ktap_end
fi

devices_up 9000
program_verdicts "one device" 300 in_ns $A "$LIMITS" -d $DEV_A -i $IP_A
ktap_end
