#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce and rdma_rxe, each in a namespace of its own, each as the server and as the client of the other: the stock
# tools and verify. What these do not do is in interop_ops.sh.
. "$(dirname "$0")/lib.sh"
. "$SELF/talk.sh"
. "$SELF/beside_rxe.sh"

VERIFY_OPTIONS=$RXE_VERIFY_OPTIONS

# talk NAME SERVER_NS SERVER_DEV SERVER_IP CLIENT_NS CLIENT_DEV CLIENT_IP
talk() {
	local where=$1 sns=$2 sdev=$3 sip=$4 cns=$5 cdev=$6 cip=$7 sgid cgid name seconds server client
	sgid=$(gid_index "$sns" "$sdev" "$sip") && cgid=$(gid_index "$cns" "$cdev" "$cip") || bail "$where: no GIDs"
	while IFS='|' read -r name seconds server client <&3; do
		run_pair "$seconds" "$sns" "$(talk_fill "$server" "$sdev" "$sgid" "$sip" "$cip")" \
			"$cns" "$(talk_fill "$client" "$cdev" "$cgid" "$sip" "$cip")" 3<&-
		result $? "$where: $name"
	done 3< <(talk_cases)
}

# group NAME RECEIVER_NS RECEIVER_IP SENDER_NS SENDER_IP
group() {
	mckey_pair "$2" "$3" "$4" "$5" 239.98.1.2 -S 500
	result $? "$1: mckey"
}

beside_rxe_up
name="server sroce, client rxe"
watched "$name" 50 talk "$name" $A $DEV_A $IP_A $B $DEV_B $IP_B
name="server rxe, client sroce"
watched "$name" 50 talk "$name" $B $DEV_B $IP_B $A $DEV_A $IP_A
LINGER=$(program linger.so) group "from rxe to sroce" $A $IP_A $B $IP_B
group "from sroce to rxe" $B $IP_B $A $IP_A
ktap_end
