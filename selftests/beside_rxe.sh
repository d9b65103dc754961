# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# sroce on host A and rdma_rxe on host B, for tests in which each is the server and the client of the other. Sourced
# after lib.sh. Needs an rdma_rxe that knows namespaces (7.2); where it does not, two machines do it: two_machines.sh.

# beside_rxe_up : both hosts with their devices; the test is skipped where that is not possible
beside_rxe_up() {
	if [ "$DRIVER" = rxe ]; then
		ktap_skip "interop" "this is rxe with rxe"
		ktap_end
	fi
	modprobe -q rdma_rxe || { ktap_skip "interop" "no rdma_rxe in this kernel"; ktap_end; }
	driver_load
	hosts_up 9000
	link_add "$A" "$DEV_A" || bail "no sroce device"
	if ! DRIVER=rxe link_add "$B" "$DEV_B"; then
		ktap_skip "interop" "rdma_rxe does not work in a second namespace here"
		ktap_end
	fi
}

# watched NAME N COMMAND... : meanwhile no packet has a wrong ICRC, and little is sent twice. Where two processors
# deliver what the other side has sent, a message of many packets may overtake itself, and rdma_rxe asks again up to
# thirty times until it is in order: so N, and one for each megabyte; more on a slow machine, whose processors wait
# longer for each other.
watched() {
	local name=$1 allowed=$2 again icrc sent
	shift 2
	counters "$A" "$DEV_A" >"$TMP/a.before"
	counters "$B" "$DEV_B" >"$TMP/b.before"
	again=$(sent_again) icrc=$(counter "$A" "$DEV_A" rx_icrc_encapsulated) sent=$(sent_bytes)
	"$@"
	again=$(($(sent_again) - again)) sent=$(($(sent_bytes) - sent))
	icrc=$(($(counter "$A" "$DEV_A" rx_icrc_encapsulated) - icrc))
	counters "$A" "$DEV_A" >"$TMP/a.after"
	counters "$B" "$DEV_B" >"$TMP/b.after"
	note "sroce: $(changed_counters "$TMP/a.before" "$TMP/a.after")"
	note "rxe: $(changed_counters "$TMP/b.before" "$TMP/b.after")"
	note "$name: $sent bytes sent; $icrc ICRC errors; $again retransmissions or requests for one"
	[ $icrc -eq 0 ]
	result $? "$name: no ICRC errors"
	[ $again -le $(((sent / 1000000 + allowed) * SLOW)) ]
	result $? "$name: no retransmission storm"
}

# by either side
sent_again() { echo $(($(retransmissions "$A" "$DEV_A") + $(DRIVER=rxe retransmissions "$B" "$DEV_B"))); }
sent_bytes() { echo $(($(wire_bytes "$A") + $(wire_bytes "$B"))); }
