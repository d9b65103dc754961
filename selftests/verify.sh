#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Reliable connections and datagrams with every byte and every completion checked: on one host, and
# between two over links of both usual MTUs, IPv4 and IPv6.
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) || bail "verify was not built"
rounds=6
[ "$SET" = full ] && rounds=40

# verify NAME IP_OF_SERVER IP_OF_CLIENT [OPTIONS] : prints the client's numbers
verify() {
	local name=$1 sip=$2 cip=$3
	shift 3
	pair "$name" 120 "$VERIFY -d $DEV_A -i $sip" \
		"$VERIFY -d ${CLIENT_DEV:-$DEV_B} -i $cip -n $rounds $VERIFY_OPTIONS $* $sip"
	note "$(tail -n 1 "$TMP/client")"
}

# verify_ud NAME IP_OF_SERVER IP_OF_CLIENT
verify_ud() {
	pair "$1" 60 "$(program verify_ud) -d $DEV_A -i $2" \
		"$(program verify_ud) -d ${CLIENT_DEV:-$DEV_B} -i $3 -n $((rounds * 100)) $2"
	note "$(tail -n 1 "$TMP/server")"
}

# crossed NAME COMMAND... : it also made bytes cross the link
crossed() {
	local name=$1 before
	shift
	before=$(wire_bytes $A)
	"$@"
	before=$(($(wire_bytes $A) - before))
	note "$before bytes crossed the link"
	[ $before -gt 100000 ]
	result $? "$name: the link was used"
}

devices_up 9000
CLIENT_NS=$A CLIENT_DEV=$DEV_A verify "one device" $IP_A $IP_A
CLIENT_NS=$A CLIENT_DEV=$DEV_A verify_ud "datagrams, one device" $IP_A $IP_A
CLIENT_NS=$A CLIENT_DEV=$DEV_A verify "one device, all path MTUs" $IP_A $IP_A -M all -q 5
crossed "two hosts" verify "two hosts, IPv4" $IP_A $IP_B
verify "two hosts, IPv6" $IP6_A $IP6_B
verify "all path MTUs" $IP_A $IP_B -M all -q 5
verify_ud "datagrams, IPv4" $IP_A $IP_B
verify_ud "datagrams, IPv6" $IP6_A $IP6_B
verify "events" $IP_A $IP_B -e
verify "receiver not ready" $IP_A $IP_B -r -n 3
verify "one READ or atomic at a time" $IP_A $IP_B -a 1 -o read,cas,fadd,count,write -m 65536
verify "small messages" $IP_A $IP_B -m 300 -b 128 -q 16 -n 20
verify "large messages" $IP_A $IP_B -m 9000000 -q 1 -b 8 -n 4
verify "one direction" $IP_A $IP_B -1
for op in send send_imm send_inv write write_imm read cas fadd count; do
	[ "$DRIVER $op" != "rxe send_inv" ] || continue
	verify "only $op" $IP_A $IP_B -o $op -n 2
done

run_pair 60 $A "$VERIFY -d $DEV_A -i $IP_A --sabotage" $B "$VERIFY -d $DEV_B -i $IP_B -n 1 -o write $IP_A" >"$TMP/out"
grep -q 'WRONG data' "$TMP/server"
result $? "one wrong bit in memory is noticed"

devices_up 1500
verify "Ethernet MTU 1500, IPv4" $IP_A $IP_B
verify "Ethernet MTU 1500, IPv6" $IP6_A $IP6_B
verify_ud "datagrams, Ethernet MTU 1500" $IP_A $IP_B

ktap_end
