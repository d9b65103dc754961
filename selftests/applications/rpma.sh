#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# librpma, remote access to persistent memory, as the distribution has built it: the program rpma.c does each of its
# operations on memory of another host that is pinned, and on memory on demand, and compares every byte.
. "$(dirname "$0")/lib.sh"
needs "librpma" gcc
[ -e /usr/include/librpma.h ] || { ktap_skip "librpma" "no librpma.h"; ktap_end; }

# memory NAME [OPTION] : of the server. What it reads twice and what it writes goes over the wire.
memory() {
	over_wire 2000000/500000 pair "$1" 60 "$TMP/rpma server $IP_A ${2:-}" "$TMP/rpma client $IP_A" ||
		result 1 "$1: by RDMA"
	verdicts "$1, server" "$TMP/server"
	verdicts "$1, client" "$TMP/client"
}

devices_up 9000
gcc -O2 -Wall -Wextra -o "$TMP/rpma" "$APPS/rpma.c" -lrpma -libverbs >"$TMP/cc" 2>&1 || { notes <"$TMP/cc"; bail "gcc"; }
memory "pinned"
memory "on demand" on-demand
ktap_end
