#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What leaves a host, looked at by a receiver that is not the driver: every ICRC, IP id, length, header bit and
# sequence number, with trains as they are, with trains split late by the stack in software, and without trains.
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) && VERIFY_UD=$(program verify_ud) || bail "verify was not built"
CHECK=$(program icrc_check) || bail "icrc_check was not built"
rounds=4
[ "$SET" = full ] && rounds=30
rxe_options=
[ "$DRIVER" != rxe ] || rxe_options=-m

check "the tests' own ICRC is right" 5 "$(program wire_vectors)"

field() { sed -n "s/.*[ ]*\b$1=\([0-9]*\).*/\1/p" "$2" | tail -n 1; }

# captured NAME MTU OPTIONS SERVER CLIENT : run a pair while both hosts are watched, or those of $WATCHED
captured() {
	local name=$1 mtu=$2 options=$3 ns status watched=${WATCHED:-$A $B} pids=()
	echo 'resent=0 trains=0 packets=0 gaps=0' | tee "$TMP/capture.$A" >"$TMP/capture.$B"
	for ns in $watched; do
		: >"$TMP/capture.$ns"
		# shellcheck disable=SC2086 # options
		ip netns exec $ns "$CHECK" -i veth0 -t 120 -M "$mtu" $rxe_options $options >"$TMP/capture.$ns" 2>&1 &
		pids+=($!)
		wait_for 5 grep -q capturing "$TMP/capture.$ns"
	done
	pair "$name: traffic" 60 "$4" "$5"
	sleep 0.2
	kill "${pids[@]}"
	for ns in $watched; do
		wait "${pids[0]}"
		status=$?
		pids=("${pids[@]:1}")
		note "at $ns: $(tail -n 1 "$TMP/capture.$ns")"
		[ $status -eq 0 ] || notes <"$TMP/capture.$ns"
		result $status "$name: every packet to $ns is right"
	done
	resent=$(($(field resent "$TMP/capture.$A") + $(field resent "$TMP/capture.$B")))
	trains=$(($(field trains "$TMP/capture.$A") + $(field trains "$TMP/capture.$B")))
	packets=$(($(field packets "$TMP/capture.$A") + $(field packets "$TMP/capture.$B")))
	[ $resent -le $((packets / 100)) ]
	result $? "$name: next to nothing is sent again"
}

# traffic NAME MTU CAPTURE_OPTIONS [IP_A IP_B] : of all operations
traffic() {
	captured "$1" "$2" "$3" "$ONE_CPU $VERIFY -d $DEV_A -i ${4:-$IP_A}" \
		"$ONE_CPU $VERIFY -d $DEV_B -i ${5:-$IP_B} -T 18 -n $rounds -M $2 $VERIFY_OPTIONS ${4:-$IP_A}"
}

segmentation() { # segmentation on|off : of the netdevs
	local ns
	for ns in $A $B; do
		in_ns "$ns" ethtool -K veth0 tx-udp-segmentation "$1" || return
	done
}

# gso on|off : of the driver
gso() {
	local f=/sys/module/sroce/parameters/gso
	[ -w $f ] && { [ "$1" = on ] && echo Y >$f || echo N >$f; }
}

# trains_seen NAME : there were some
trains_seen() {
	[ "$DRIVER" = rxe ] && { ktap_skip "$1: trains" "rxe has none"; return; }
	note "$trains trains, the longest $(field longest "$TMP/capture.$A") and $(field longest "$TMP/capture.$B") packets"
	[ "$trains" -gt 0 ]
	result $? "$1: there are trains"
}

# ids_go_on NAME : from one buffer to the next, or receivers cannot couple them. Where both directions of a connection
# send at the same time, they may not.
ids_go_on() {
	local gaps
	[ "$DRIVER" = rxe ] && { ktap_skip "$1: identifications go on" "rxe has random ones"; return; }
	gaps=$(($(field gaps "$TMP/capture.$A") + $(field gaps "$TMP/capture.$B")))
	note "$gaps gaps in $packets packets"
	[ $gaps -le $((packets / 100)) ]
	result $? "$1: identifications go on"
}

# A window of single packets is more than the stack queues for a processor by itself; what it drops is lost like
# anything else, but here nothing is to be missing.
backlog=/proc/sys/net/core/netdev_max_backlog
saved=$(cat $backlog)
workers_on_one_cpu
trap 'echo $saved >$backlog; workers_anywhere; finish' EXIT
echo 30000 >$backlog

devices_up 9000
traffic "trains, MTU 4096" 4096 ""
trains_seen "trains, MTU 4096"
ids_go_on "trains, MTU 4096"
traffic "trains, IPv6" 4096 "" $IP6_A $IP6_B
trains_seen "trains, IPv6"
traffic "trains, MTU 256" 256 ""
ids_go_on "trains, MTU 256"
if segmentation off; then
	traffic "split in software, MTU 4096" 4096 -g
	traffic "split in software, MTU 1024" 1024 -g
	traffic "split in software, IPv6" 1024 -g $IP6_A $IP6_B
	segmentation on
else
	ktap_skip "split in software" "no ethtool, or it cannot switch the netdev's segmentation off"
fi
if gso off; then
	traffic "without trains, MTU 4096" 4096 -g
	traffic "without trains, MTU 1024, IPv6" 1024 -g $IP6_A $IP6_B
	gso on
else
	ktap_skip "without trains" "the driver has no parameter gso"
fi
captured "datagrams and connection set-up" 0 "" "udaddy -b $IP_A -C 50 -S 1000" "udaddy -s $IP_A -C 50 -S 1000"
# one way
WATCHED=$A captured "datagrams of several queue pairs" 0 "" "$VERIFY_UD -d $DEV_A -i $IP_A" "$VERIFY_UD -d $DEV_B -i $IP_B -n 200 $IP_A"
note "$(field ports "$TMP/capture.$A") UDP source ports"
if [ "$DRIVER" = rxe ]; then
	ktap_skip "they have UDP source ports of their own" "rxe sends all of a host from one"
else
	[ "$(field ports "$TMP/capture.$A")" -gt 1 ]
	result $? "they have UDP source ports of their own"
fi
captured "rping" 0 "" "rping -s -a $IP_A -C 20 -V" "rping -c -a $IP_A -C 20 -V"

# The receiver itself: it must notice what is wrong.
if tc -n $A qdisc replace dev veth0 root netem corrupt 2%; then
	: >"$TMP/capture.$B"
	ip netns exec $B "$CHECK" -i veth0 -t 60 -m >"$TMP/capture.$B" 2>&1 &
	checker=$!
	wait_for 5 grep -q capturing "$TMP/capture.$B"
	run_pair 60 $A "$VERIFY -d $DEV_A -i $IP_A" "$B" "$VERIFY -d $DEV_B -i $IP_B -n 2 $VERIFY_OPTIONS $IP_A" >"$TMP/out"
	kill $checker
	wait $checker
	[ $? -eq 1 ] && grep -q 'WRONG packet.*ICRC' "$TMP/capture.$B"
	result $? "the receiver notices damaged packets"
else
	ktap_skip "the receiver notices damaged packets" "no netem"
fi

devices_up 1500
traffic "Ethernet MTU 1500" 1024 ""
ktap_end
