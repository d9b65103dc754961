#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What rdma_rxe has beyond reliable connections, between it and sroce, each asking the other: every operation by name,
# by a program of our own; and what perftest has for it.
. "$(dirname "$0")/lib.sh"
. "$SELF/beside_rxe.sh"

OPS=$(program ops) || bail "ops was not built"
GROUP4=239.98.1.3 GROUP6=ff0e::98:3

# ops NAME GROUP ANSWER_NS DEVICE IP DRIVER ASK_NS DEVICE IP DRIVER : what they say to each other first goes over IPv4
ops() {
	local name=$1 group=$2 to=$IP_A
	[ "$3" = "$A" ] || to=$IP_B
	run_pair 120 "$3" "env DRIVER=$6 $OPS -g $group -d $4 -i $5" "$7" "env DRIVER=${10} $OPS -g $group -d $8 -i $9 $to"
	grep '^# ' "$TMP/client"
	verdicts "$name" "$TMP/client"
	tail -n 1 "$TMP/client" | grep -q ' wrong$'
	result $? "$name: came to its end"
}

# perftests NAME SERVER_NS DEVICE IP CLIENT_NS DEVICE IP
perftests() {
	local name=$1 sns=$2 sdev=$3 sip=$4 cns=$5 cdev=$6 cip=$7 sgid cgid command size="-s 65536 -n 20"
	[ "$SET" = quick ] || size="-a -n 5"
	sgid=$(gid_index "$sns" "$sdev" "$sip") && cgid=$(gid_index "$cns" "$cdev" "$cip") || bail "$name: no GIDs"
	for command in "ib_send_bw -c UC $size" "ib_send_lat -c UC $size" "ib_write_bw -c UC $size" "ib_write_lat -c UC $size" \
		"ib_send_bw -c UC -b -q 4 -s 4096 -n 100" "ib_send_bw --use-srq -q 4 -s 4096 -n 100" "ib_send_lat --use-srq -s 4096 -n 50"; do
		run_pair 60 "$sns" "$command -F -d $sdev -x $sgid" "$cns" "$command -F -d $cdev -x $cgid $sip" &&
			grep -qE '^ *[0-9]+ +[0-9]+ ' "$TMP/client"
		result $? "$name: $command"
	done
}

# all_of_it NAME SERVER_NS DEVICE IP IP6 DRIVER CLIENT_NS DEVICE IP IP6 DRIVER
all_of_it() {
	ops "$1, IPv4" "$GROUP4" "$2" "$3" "$4" "$6" "$7" "$8" "$9" "${11}"
	ops "$1, IPv6" "$GROUP6" "$2" "$3" "$5" "$6" "$7" "$8" "${10}" "${11}"
	perftests "$1" "$2" "$3" "$4" "$7" "$8" "$9"
	# its packets carry a wrong ICRC; ours are compared with vectors in KUnit
	ktap_skip "$1: FLUSH" "rdma_rxe has it wrong"
}

beside_rxe_up
name="rxe asks sroce"
watched "$name" 200 all_of_it "$name" $A $DEV_A $IP_A $IP6_A sroce $B $DEV_B $IP_B $IP6_B rxe
name="sroce asks rxe"
watched "$name" 200 all_of_it "$name" $B $DEV_B $IP_B $IP6_B rxe $A $DEV_A $IP_A $IP6_A sroce
ktap_end
