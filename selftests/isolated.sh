#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A processor that the administrator keeps for something else (isolcpus, nohz_full): whoever names it as completion
# vector does not have it interrupted.
. "$(dirname "$0")/lib.sh"

VECTORS=$(program vectors) || bail "vectors was not built"
MESSAGES=500

# The last CPU has to be isolated, and the one before it not: that one shows that what is counted comes at all
last=$(($(getconf _NPROCESSORS_CONF) - 1))
grep -qw "$last" /sys/devices/system/cpu/isolated 2>/dev/null && [ $last -ge 2 ] || {
	ktap_skip "isolated" "CPU $last is not isolated (isolcpus=$last with three CPUs or more)"
	ktap_end
}

# tasklets CPU : how many that one has run
tasklets() { awk -v cpu="$1" '$1 == "TASKLET:" { print $(cpu + 2) }' /proc/softirqs; }

# by_vector N : $ran, the tasklets that CPU N has run for messages by vector N
by_vector() {
	local before
	before=$(tasklets "$1")
	check "vector $1: every message has its event" 60 in_ns $A "$VECTORS" -d $DEV_A -i $IP_A "$1" $MESSAGES
	ran=$(($(tasklets "$1") - before))
	note "$ran tasklets on CPU $1 for $MESSAGES messages"
}

devices_up 9000
by_vector $((last - 1))
[ $ran -ge $((MESSAGES / 2)) ]
result $? "a vector is the CPU of that number"
by_vector $last
[ $ran -le $((MESSAGES / 10)) ]
result $? "but for one that is isolated"
ktap_end
