#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce and rdma_rxe, each in a namespace of its own, each as the server and as the client of the other. Needs an
# rdma_rxe that knows namespaces (7.2); where it does not, two machines do it: two_machines.sh.
. "$(dirname "$0")/lib.sh"
. "$SELF/talk.sh"

if [ "$DRIVER" = rxe ]; then
	ktap_skip "interop" "this is rxe with rxe"
	ktap_end
fi
modprobe -q rdma_rxe || { ktap_skip "interop" "no rdma_rxe in this kernel"; ktap_end; }
VERIFY_OPTIONS=$RXE_VERIFY_OPTIONS

rxe_retransmissions() { DRIVER=rxe retransmissions $B $DEV_B; }

# talk NAME SERVER_NS SERVER_DEV SERVER_IP CLIENT_NS CLIENT_DEV CLIENT_IP
talk() {
	local where=$1 sns=$2 sdev=$3 sip=$4 cns=$5 cdev=$6 cip=$7 sgid cgid name seconds server client sent ours theirs icrc
	sgid=$(gid_index "$sns" "$sdev" "$sip") && cgid=$(gid_index "$cns" "$cdev" "$cip") || bail "$where: no GIDs"
	ours=$(retransmissions $A $DEV_A) theirs=$(rxe_retransmissions)
	icrc=$(counter $A $DEV_A rx_icrc_encapsulated)
	sent=$(wire_bytes $A)
	while IFS='|' read -r name seconds server client <&3; do
		run_pair "$seconds" "$sns" "$(talk_fill "$server" "$sdev" "$sgid" "$sip" "$cip")" \
			"$cns" "$(talk_fill "$client" "$cdev" "$cgid" "$sip" "$cip")" 3<&-
		result $? "$where: $name"
	done 3< <(talk_cases)
	sent=$(($(wire_bytes $A) - sent))
	ours=$(($(retransmissions $A $DEV_A) - ours)) theirs=$(($(rxe_retransmissions) - theirs))
	icrc=$(($(counter $A $DEV_A rx_icrc_encapsulated) - icrc))
	note "$where: $sent bytes sent by sroce; $icrc ICRC errors"
	note "retransmissions or requests for one: sroce $ours, rxe $theirs"
	[ $icrc -eq 0 ]
	result $? "$where: no ICRC errors"
	[ $((ours + theirs)) -le $((sent / 1000000 + 50)) ]
	result $? "$where: no retransmission storm"
}

# group NAME RECEIVER_NS RECEIVER_IP SENDER_NS SENDER_IP : the receiver ends when it has got all messages
group() {
	run_pair 40 "$2" "mckey -b $3 -m 239.98.1.2 -C 20 -S 500" "$4" "mckey -s -b $5 -m 239.98.1.2 -C 20 -S 500"
	result $? "$1: mckey"
}

driver_load
hosts_up 9000
link_add $A $DEV_A || bail "no sroce device"
if ! DRIVER=rxe link_add $B $DEV_B; then
	ktap_skip "interop" "rdma_rxe does not work in a second namespace here"
	ktap_end
fi
talk "server sroce, client rxe" $A $DEV_A $IP_A $B $DEV_B $IP_B
talk "server rxe, client sroce" $B $DEV_B $IP_B $A $DEV_A $IP_A
group "from rxe to sroce" $A $IP_A $B $IP_B
group "from sroce to rxe" $B $IP_B $A $IP_A
ktap_end
