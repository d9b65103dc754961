#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Packets that nobody should send: one by one, with what the protocol says must come of each, and by the
# hundred thousand, while a connection between the same two hosts goes on undisturbed.
#
# PACKETS=N (50000 for each of IPv4 and IPv6; 200000 in a full run)  SEED=N
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) || bail "verify was not built"
amount PACKETS 50000 200000
seeded PACKETS
# only sroce takes buffers whole
couple=
[ "$DRIVER" != sroce ] || couple=-g

mac_of() { in_ns "$1" cat /sys/class/net/veth0/address; }

# shoot NAME TARGET_IP OUR_IP : from host B at host A
shoot() {
	local name=$1 ip=$2 our=$3 target bystander peer status q victims=()
	# A connection that is under fire only from addresses which are not its peer's.
	: >"$TMP/bystander"
	ip netns exec $A "$VERIFY" -d $DEV_A -i "$ip" --show-qps >"$TMP/bystander" 2>&1 &
	bystander=$!
	# shellcheck disable=SC2086 # options
	ip netns exec $B "$VERIFY" -d $DEV_B -i "$our" -t 8 -m 65536 $VERIFY_OPTIONS "$ip" >"$TMP/peer" 2>&1 &
	peer=$!
	wait_for 10 grep -q 'qp .*peer' "$TMP/bystander"
	sleep 0.3
	while read -r q; do victims+=(-q "$q"); done < <(awk '/^qp / { print $2 }' "$TMP/bystander")

	counters $A $DEV_A >"$TMP/before"
	: >"$TMP/target"
	ip netns exec $A "$(program badpackets_target)" -d $DEV_A -i "$ip" -p "$our" >"$TMP/target" 2>&1 &
	target=$!
	wait_for 10 grep -q ready "$TMP/target"
	limit 300 ip netns exec $B "$(program badpackets)" -i veth0 -s "$our" -D "$ip" -M "$(mac_of $A)" -S "$(mac_of $B)" \
		-c "$ip" -n "$PACKETS" -r "$SEED" $couple "${victims[@]}" >"$TMP/shots" 2>&1
	status=$?
	wait $target || { status=1; notes 3 <"$TMP/target"; }
	counters $A $DEV_A >"$TMP/after"

	verdicts "$name" "$TMP/shots"
	grep -q '^flood:' "$TMP/shots" && grep -q '^bad_icrc=' "$TMP/shots"
	result $? "$name: the flood is over, the target still works"
	notes 3 <"$TMP/shots"
	note "counters: $(changed_counters "$TMP/before" "$TMP/after")"
	icrc_counted "$name"

	undisturbed "$name: a connection was not disturbed by packets from other addresses" $bystander $peer
	# which needs the queue pair that datagrams were sent to, too
	pair "$name: the connection manager works" 30 "rping -s -a $ip -C 3" "rping -c -a $ip -C 3"
	pair "$name: new connections work" 60 "$VERIFY -d $DEV_A -i $ip" "$VERIFY -d $DEV_B -i $our -n 3 $VERIFY_OPTIONS $ip"
}

icrc_counted() {
	local sent counted
	[ "$DRIVER" = rxe ] && { ktap_skip "$1: ICRC errors are counted" "rxe has no such counter"; return; }
	sent=$(sed -n 's/^bad_icrc=\([0-9]*\).*/\1/p' "$TMP/shots")
	counted=$(awk 'NR == FNR { b[$1] = $2; next } $1 == "rx_icrc_encapsulated" { print $2 - b[$1] }' \
		"$TMP/before" "$TMP/after")
	note "$sent packets had a wrong ICRC and nothing else wrong; counted: $counted"
	# some may be lost on a busy link; noise is counted too
	[ "${counted:-0}" -ge $((${sent:-1} * 9 / 10)) ]
	result $? "$1: ICRC errors are counted"
}

devices_up 9000
shoot "IPv4" $IP_A $IP_B
if [ "$DRIVER" = rxe ]; then
	# rxe_rcv() looks into skb->cb of a packet that is too short for a BTH: the kernel dies
	note "rdma_rxe 7.2 does not survive the flood over IPv6"
	PACKETS=0
fi
shoot "IPv6" $IP6_A $IP6_B
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
