#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Unmodified programs, both sides on one device.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

SERVER_DEV=$DEV_A SERVER_IP=$IP_A CLIENT_NS=$A CLIENT_DEV=$DEV_A CLIENT_IP=$IP_A
WHERE="one device"
devices_up 9000
stock_gids
counters $A $DEV_A >"$TMP/before"
pingpongs
if [ "$SET" = full ]; then
	perftests_all
	rdmacm_tools
else
	perftests_short
	rping_quick
fi
counters $A $DEV_A >"$TMP/after"

# The device's own word for it: programs that fell back to something else would pass the above.
note "$(changed_counters "$TMP/before" "$TMP/after")"
[ -n "$(changed_counters "$TMP/before" "$TMP/after")" ]
result $? "$WHERE: the device counted the traffic"
ktap_end
