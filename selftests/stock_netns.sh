#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Unmodified programs between two hosts: over both usual MTUs, IPv4 and IPv6.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B

# over NAME IP_OF_SERVER IP_OF_CLIENT GROUP... : run groups of cases, and see the link carry them
over() {
	local bytes retries group
	WHERE=$1 SERVER_IP=$2 CLIENT_IP=$3
	shift 3
	stock_gids
	bytes=$(wire_bytes $B)
	retries=$(($(retransmissions $A $DEV_A) + $(retransmissions $B $DEV_B)))
	for group; do $group; done
	bytes=$(($(wire_bytes $B) - bytes))
	retries=$(($(retransmissions $A $DEV_A) + $(retransmissions $B $DEV_B) - retries))
	note "$WHERE: $bytes bytes crossed the link, $retries retransmissions"
	# what the shortest of these groups moves, by far
	[ $bytes -gt 1000000 ]
	result $? "$WHERE: the traffic crossed the link"
}

devices_up 9000
if [ "$SET" = full ]; then
	all=(pingpongs perftests_all rdmacm_tools)
	over "MTU 9000, IPv4" $IP_A $IP_B "${all[@]}"
	over "MTU 9000, IPv6" $IP6_A $IP6_B "${all[@]}"
	devices_up 1500
	over "MTU 1500, IPv4" $IP_A $IP_B "${all[@]}"
	over "MTU 1500, IPv6" $IP6_A $IP6_B "${all[@]}"
else
	over "MTU 9000, IPv4" $IP_A $IP_B pingpongs perftests_short perftests_features rdmacm_tools
	over "MTU 9000, IPv6" $IP6_A $IP6_B pingpong_quick perftests_short rping_quick
	devices_up 1500
	over "MTU 1500, IPv4" $IP_A $IP_B pingpong_quick perftests_short
fi
ktap_end
