#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Tracepoints: those that Documentation/tracing.md names are there with the fields that it names; what they tell of trains,
# losses, receivers that are not ready, page faults, states and rates agrees with the device's counters.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

VERIFY=$(program verify) && QPSTATE=$(program qpstate) && ODP=$(program odp) || bail "verify, qpstate or odp was not built"
[ "$DRIVER" = sroce ] || { ktap_skip "tracepoints" "rdma_rxe has none"; ktap_end; }
T=/sys/kernel/tracing
[ -d $T/events ] || mount -t tracefs tracefs $T 2>/dev/null
driver_load
[ -d $T/events/sroce ] || { ktap_skip "tracepoints" "no tracefs, or a kernel without CONFIG_EVENT_TRACING"; ktap_end; }
saved=$(awk '{ print $1; exit }' $T/buffer_size_kb)
tracing_off() {
	[ ! -d "$T/events/sroce" ] || echo 0 >"$T/events/sroce/enable"
	echo >"$T/trace"
	echo "$saved" >"$T/buffer_size_kb"
}
trap 'tracing_off; finish' EXIT
echo 32768 >$T/buffer_size_kb
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B

# --- what is documented -----------------------------------------------------------------------------------

fields_of() { sed -n 's/^.*field:.* \([a-z_]*\);.*/\1/p' "$T/events/sroce/$1/format" | grep -v ^common_; }
doc=$SELF/../Documentation/tracing.md
if [ -f "$doc" ]; then
	while IFS='|' read -r _ event fields _; do
		event=$(tr -d ' `' <<<"$event")
		missing=
		for field in $(tr -d ',`' <<<"$fields"); do
			fields_of "$event" 2>/dev/null | grep -qx "$field" || missing+=" $field"
		done
		[ -z "$missing" ] || note "missing:$missing"
		[ -z "$missing" ] && [ -d "$T/events/sroce/$event" ]
		result $? "$event is there with the fields that are documented"
	done < <(grep '^| `sroce_' "$doc")
	for event in "$T"/events/sroce/sroce_*; do
		grep -q "^| \`${event##*/}\` " "$doc"
		result $? "${event##*/} is documented"
	done
else
	ktap_skip "documented events" "no documents here"
fi

# --- counting -----------------------------------------------------------------------------------------------

# traced COMMAND... : with all events on; what they were is in $TMP/trace
traced() {
	local status
	echo >$T/trace
	counters $A $DEV_A >"$TMP/before.a" && counters $B $DEV_B >"$TMP/before.b"
	echo 1 >$T/events/sroce/enable
	"$@"
	status=$?
	sleep 0.2
	echo 0 >$T/events/sroce/enable
	counters $A $DEV_A >"$TMP/after.a" && counters $B $DEV_B >"$TMP/after.b"
	grep -c ^ $T/trace >/dev/null && sed '/^#/d' $T/trace >"$TMP/trace"
	! grep -qE '^(overrun|dropped events): [1-9]' $T/per_cpu/cpu*/stats
	result $? "the trace is whole ($(grep -c ^ "$TMP/trace") events)"
	return $status
}
# counted NAME... : the sum of how much these have grown, of both devices
counted_both() {
	local side
	for side in a b; do
		awk -v names=" $* " 'index(names, " " $1 " ") { n[FILENAME ~ /before/] += $2 } END { print n[0] - n[1] }' \
			"$TMP/before.$side" "$TMP/after.$side"
	done | awk '{ n += $1 } END { print n + 0 }'
}
# events PATTERN : how many; packets PATTERN : the sum of their packets
events() { grep -cE "$1" "$TMP/trace"; }
packets() { grep -E "$1" "$TMP/trace" | sed -n 's/.* packets=\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }
# agree NAME EVENTS COUNTED [LEAST] : they are the same, and not less than that
agree() {
	note "$1: $2 traced, $3 counted"
	[ "$2" -eq "$3" ] && [ "$2" -ge "${4:-1}" ]
	result $? "$1: traced as counted"
}

devices_up 9000
traced pair "verify between two hosts" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 18 -n 2 $IP_A"
# Notifications leave no queue pair: they are the device's answer to marks
agree "packets sent" "$(($(packets 'sroce_train_sent:.* direct=0') + $(counted_both np_cnp_sent)))" \
	"$(counted_both rdma_tx_packets tx_dropped_packets)" 100
agree "packets received" "$(packets 'sroce_train_received:.* direct=0')" "$(counted_both rdma_rx_packets)" 100
[ "$(events 'sroce_ack: ')" -gt 0 ] && [ "$(events 'sroce_window: .* window=[1-9]')" -gt 0 ]
result $? "ACKs and windows are traced"
# each queue pair goes the same way
qpn=$(sed -n 's/.*sroce_qp_state: qpn=\([0-9]*\) .* to=RTS/\1/p' "$TMP/trace" | head -n 1)
states=$(sed -n "s/.*sroce_qp_state: qpn=$qpn from=\(.*\) to=\(.*\)/\1>\2/p" "$TMP/trace" | tr '\n' ' ')
note "states of queue pair $qpn: $states"
[[ $states == "RESET>INIT INIT>RTR RTR>RTS"* ]]
result $? "states of a queue pair"

CLIENT_NS=$A traced pair "verify on one device" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_A -i $IP_A -n 2 $IP_A"
agree "packets that are never made" "$(packets 'sroce_train_sent:.* direct=1')" "$(counted_both direct_packets)" 100

if [ "$SET" = full ]; then
	traced program_verdicts "qpstate" 120 "$QPSTATE" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
	agree "timeouts" "$(events 'sroce_retransmit: .* reason=timeout')" "$(counted_both local_ack_timeout_err)"
	agree "receivers that are not ready" "$(events 'sroce_rnr_wait: ')" \
		"$(($(counted_both rnr_nak_retry_err) - $(counted_both req_rnr_retries_exceeded)))"
	[ "$(events 'sroce_nak: .*syndrome=0x6')" -gt 0 ] && [ "$(events 'sroce_qp_state: .* to=ERR')" -gt 0 ]
	result $? "errors are traced"
fi

if tc -n $B qdisc replace dev veth0 root netem loss 3%; then
	traced pair "verify, 3 % lost" 120 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 10 -n 4 $IP_A"
	tc -n $B qdisc del dev veth0 root
	agree "NAKs that have something sent again" "$(events 'sroce_retransmit: .* reason=nak')" "$(counted_both packet_seq_err)"
	agree "READs that have something sent again" "$(events 'sroce_retransmit: .* reason=implied_nak')" \
		"$(counted_both implied_nak_seq_err)" 0
else
	ktap_skip "losses" "no netem"
fi

has_odp() { in_ns $A ibv_devinfo -v -d $DEV_A | grep -q 'ODP_SUPPORT'; }
if [ "$SET" = full ] && has_odp; then
	traced program_verdicts "odp" 120 "$ODP" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
	agree "page faults" "$(events 'sroce_page_fault: ')" "$(counted_both odp_page_faults)"
	for side in requester responder; do
		[ "$(events "sroce_page_fault: .* side=$side")" -gt 0 ]
		result $? "page faults of the $side"
	done
fi

# --- congestion ---------------------------------------------------------------------------------------------

for dev in $DEV_A $DEV_B; do echo 1 >"/sys/class/infiniband/$dev/ports/1/cc_params/rp_enable"; done
if tc -n $B qdisc replace dev veth0 clsact && tc -n $B filter add dev veth0 egress pref 1 protocol ip matchall \
	action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h; then
	stock_gids
	WHERE="marked packets" traced perftest ib_write_bw -s 65536 -n 50
	tc -n $B qdisc del dev veth0 clsact
	note "$(grep sroce_rate: "$TMP/trace" | head -n 2 | tr -s ' ' | tr '\n' ';')"
	[ "$(events 'sroce_rate: .* rate=[1-9][0-9]* target=[1-9][0-9]* alpha=[1-9]')" -gt 0 ]
	result $? "rates and alpha are traced"
	[ "$(events 'sroce_rate: ')" -le "$(counted_both rp_cnp_handled)" ]
	result $? "no more often than there are notifications ($(counted_both rp_cnp_handled))"
	! sed -n 's/.*sroce_rate: .* alpha=\([0-9]*\)/\1/p' "$TMP/trace" | awk '$1 > 65536 { bad = 1 } END { exit !bad }'
	result $? "alpha is at most 1"
else
	ktap_skip "congestion" "tc cannot mark packets"
fi

# --- the module goes while events are on -----------------------------------------------------------------------

before=$(splats)
echo 1 >$T/events/sroce/enable
pair "verify while they are on" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 18 -n 1 $IP_A" >/dev/null
unharmed "$before"
