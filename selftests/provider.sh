#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What the provider has to be right about by itself.
. "$(dirname "$0")/lib.sh"

PROVIDER=$(program provider) || bail "provider was not built"
if [ "$DRIVER" != sroce ]; then
	ktap_skip "provider" "it knows the rings of sroce only"
	ktap_end
fi

devices_up 9000
program_verdicts "one device" 120 in_ns $A "$PROVIDER" -d $DEV_A -i $IP_A
ktap_end
