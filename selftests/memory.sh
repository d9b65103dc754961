#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Memory regions and windows: on one device, and between two hosts; and every operation on every kind of memory.
. "$(dirname "$0")/lib.sh"

# huge pages, where the platform has any
huge=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
if [ -w $huge ] && [ "$(cat $huge)" -lt 4 ]; then
	saved=$(cat $huge)
	trap 'echo $saved >$huge; finish' EXIT
	echo 4 >$huge
	note "$(cat $huge) huge pages"
fi

devices_up 9000
two_ways memory
ktap_prefix="kinds: "
two_ways kinds
ktap_end
