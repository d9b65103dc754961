#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A link that loses, reorders, repeats and corrupts, in both directions: data stays correct, corruption is
# counted, and what is sent again stays in proportion.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"
. "$SELF/impair.sh"

VERIFY=$(program verify) || bail "verify was not built"
seconds=3
[ "$SET" = full ] && seconds=20

SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B

icrc_errors() { counter "$1" "$2" rx_icrc_encapsulated; }

# under NAME NETEM... : one kind of impairment
under() {
	local name=$1 sent retries icrc
	shift
	impair "$@" || { ktap_skip "$name" "no netem"; return; }
	sent=$(all_packets)
	retries=$(all_retries)
	icrc=$(($(icrc_errors $A $DEV_A) + $(icrc_errors $B $DEV_B)))
	pair "$name: verify" $((seconds + 60)) "$VERIFY -d $DEV_A -i $IP_A" \
		"$VERIFY -d $DEV_B -i $IP_B -t $seconds -s $RANDOM $VERIFY_OPTIONS $IP_A"
	note "$(tail -n 1 "$TMP/client")"
	WHERE=$name
	perftest ib_write_bw -s 65536 -n 300
	if [ "$SET" = full ]; then
		perftest ib_read_bw -s 65536 -n 300
		perftest ib_send_bw -s 65536 -n 300 -b
		perftest ib_atomic_bw -n 300
		pair "$name: datagrams" 60 "$(program verify_ud) -d $DEV_A -i $IP_A -l" \
			"$(program verify_ud) -d $DEV_B -i $IP_B -l $IP_A"
		# rdma_cm chooses the version by itself
		[ -n "${ROCE:-}" ] || pair "$name: rping" 60 "rping -s -a $IP_A -C 50 -V" "rping -c -a $IP_A -C 50 -V"
	fi
	# netem changes bits of the first part of a buffer: in most packets headers that IP and UDP check already
	[[ $* != corrupt* ]] || perftest ib_send_bw -s 64 -n 20000
	plausible "$name" "$sent" "$retries"
	[[ $* == corrupt* ]] || return
	icrc=$(($(icrc_errors $A $DEV_A) + $(icrc_errors $B $DEV_B) - icrc))
	if [ "$DRIVER" = rxe ]; then
		ktap_skip "$name: ICRC errors are counted" "rxe has no such counter"
		return
	fi
	note "$icrc ICRC errors"
	[ $icrc -gt 0 ]
	result $? "$name: ICRC errors are counted"
}

devices_up 9000
stock_gids
for percent in 0.1 1; do
	under "loss $percent %" loss $percent%
	under "reordering $percent %" delay 1ms reorder "$(awk "BEGIN { print 100 - $percent }")%"
	under "duplication $percent %" duplicate $percent%
	under "corruption $percent %" corrupt $percent%
done
under "all at once, 1 %" delay 200us loss 1% duplicate 1% corrupt 1%

# Requests behind a gap are held: what was lost comes alone, what is late is waited for
if [ "$DRIVER" != rxe ]; then
	held=$(counter $A $DEV_A rx_held_packets)
	note "$held packets held, $(counter $A $DEV_A rx_held_dropped_packets) of them dropped, $(counter $A $DEV_A rx_reordered_gaps) gaps were late packets"
	[ "$held" -gt 0 ]
	result $? "requests behind a gap are held"
	setting selective_repeat_en 0
	result $? "go-back-N is switched on"
	under "go-back-N, loss 1 %" loss 1%
	# What came behind a late packet was dropped, and is asked for once more when that one has come
	most=8
	under "go-back-N, reordering 1 %" delay 1ms reorder 99%
	most=4
	under "go-back-N, all at once, 1 %" delay 200us loss 1% duplicate 1% corrupt 1%
	[ "$(counter $A $DEV_A rx_held_packets)" -eq "$held" ]
	result $? "go-back-N: nothing is held"
	setting selective_repeat_en 1
fi

# Over RoCE v1 there is no UDP, whose checksum finds most of what is corrupt, and no segmentation: each packet is a buffer
PARAM=/sys/module/$DRIVER/parameters/roce_v1
roce_v1() {
	local v1 v2 wrong
	trap 'echo N >$PARAM; finish' EXIT
	echo Y >"$PARAM"
	devices_up 9000
	export ROCE=v1
	stock_gids
	tc -n $A qdisc replace dev veth0 clsact && tc -n $A filter add dev veth0 ingress pref 1 protocol 0x8915 matchall action ok &&
		tc -n $A filter add dev veth0 ingress pref 2 protocol ip flower ip_proto udp dst_port 4791 action ok ||
		bail "tc cannot count packets"
	under "RoCE v1, all at once, 1 %" delay 200us loss 1% duplicate 1% corrupt 1%
	v1=$(arrived 1) v2=$(arrived 2)
	[ "$v1" -gt 1000 ] && [ "$v2" -eq 0 ]
	result $? "RoCE v1: $v1 frames of it, $v2 packets of RoCE v2"
	# The devices are new
	wrong=$(($(icrc_errors $A $DEV_A) + $(icrc_errors $B $DEV_B)))
	[ $wrong -gt 0 ]
	result $? "RoCE v1: $wrong wrong ICRCs are counted"
	unset ROCE
	echo N >"$PARAM"
	trap finish EXIT
	devices_up 9000
	stock_gids
}
# arrived PREF : at host A, by that filter
arrived() { tc -n $A -s filter show dev veth0 ingress pref "$1" | awk '/Sent/ { n += $4 } END { print n + 0 }'; }

if [ "$DRIVER" != rxe ]; then roce_v1; else ktap_skip "RoCE v1, all at once" "rxe speaks RoCE v2 only"; fi

# $timeouts of messages that go to and fro one by one, so that each that is lost is a tail
timeouts_of_tails() {
	local before
	setting adp_retrans_en "$1"
	before=$(($(counter $A $DEV_A local_ack_timeout_err) + $(counter $B $DEV_B local_ack_timeout_err)))
	WHERE="lost tails, adp_retrans_en $1"
	perftest ib_send_lat -s 64 -n 300
	timeouts=$(($(counter $A $DEV_A local_ack_timeout_err) + $(counter $B $DEV_B local_ack_timeout_err) - before))
}

asked_after() { echo $(($(counter $A $DEV_A roce_adp_retrans) + $(counter $B $DEV_B roce_adp_retrans))); }

# A tail that is lost is asked after, long before the timeout, unless that is switched off
if [ "$DRIVER" != rxe ] && impair loss 5%; then
	asked=$(asked_after)
	timeouts_of_tails 0
	plain=$timeouts
	[ "$(asked_after)" -eq "$asked" ]
	result $? "lost tails: nobody is asked after where it is switched off"
	timeouts_of_tails 1
	asked=$(($(asked_after) - asked))
	note "$plain timeouts; $timeouts, and $asked tails asked after"
	[ "$asked" -gt 0 ] && [ "$timeouts" -lt $((plain / 2)) ]
	result $? "lost tails: asked after, and less than half as many timeouts"
fi
unimpair
retries=$(all_retries)
icrc=$(($(icrc_errors $A $DEV_A) + $(icrc_errors $B $DEV_B)))
pair "a clean link again: verify" 60 "$VERIFY -d $DEV_A -i $IP_A" \
	"$VERIFY -d $DEV_B -i $IP_B -n 5 $VERIFY_OPTIONS $IP_A"
retries=$(($(all_retries) - retries))
icrc=$(($(icrc_errors $A $DEV_A) + $(icrc_errors $B $DEV_B) - icrc))
note "a clean link: $retries retransmissions, $icrc ICRC errors"
[ $icrc -eq 0 ]
result $? "a clean link: no ICRC error"
ktap_end
