#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Nobody overtakes himself: between two hosts that lose nothing no packet comes before one that was sent earlier, on
# whichever processors the work goes on. So nothing is asked for again, and streams and ping-pongs without
# acknowledgements, which stand still when a message is lost, come to their end.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

command -v ib_write_bw >/dev/null || bail "perftest is not installed"
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B
amount n 20 200
GAPS="out_of_sequence packet_seq_err implied_nak_seq_err"
gaps=0

# in_order TOOL [OPTIONS] : both sides come to their end; gaps are added up
in_order() {
	local before after
	# shellcheck disable=SC2086 # a list
	before=$(($(counter $A $DEV_A $GAPS) + $(counter $B $DEV_B $GAPS)))
	perftest "$@"
	# shellcheck disable=SC2086
	after=$(($(counter $A $DEV_A $GAPS) + $(counter $B $DEV_B $GAPS)))
	gaps=$((gaps + after - before))
	[ $after -eq $before ] && return
	note "$*: $((after - before)) gaps"
	counted $A "$SERVER_DEV"
	counted $B "$CLIENT_DEV"
	awk '{ print "# dropped by the stack: " $2 }' /proc/net/softnet_stat
}

# streams NAME : of everything that takes more than a turn, and what is sent back meanwhile
streams() {
	WHERE=$1 gaps=0
	stock_gids
	in_order ib_write_bw -s 8388608 -n "$n"
	in_order ib_write_bw -b -a -n "$n"
	in_order ib_read_bw -b -a -n "$n"
	in_order ib_send_bw -b -s 1048576 -n $((2 * n))
	in_order ib_write_bw -q 8 -s 65536 -n $((10 * n))
	in_order ib_send_lat -c UC -a -n "$n"
	in_order ib_write_lat -c UC -a -n "$n"
	[ $gaps -eq 0 ]
	result $? "$1: no gap was seen"
}

devices_up 9000
streams "MTU 9000"
if [ "$SET" = full ]; then
	devices_up 1500
	streams "MTU 1500"
fi
ktap_end
