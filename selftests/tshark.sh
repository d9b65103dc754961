#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What Wireshark's dissector makes of the packets: opcodes, queue pairs, PSNs, AETHs and lengths as tshark prints them
# fit together and with what the kernel tells, for every operation, IPv6, UC, XRC, datagrams, connections being made and
# notifications of congestion; trains are frames of more than a packet, and with segmentation off there are none.
# Wants tshark, as "watching.packages" says for lab-with.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

VERIFY=$(program verify) && VERIFY_UD=$(program verify_ud) || bail "verify was not built"
for wanted in python3 tcpdump tshark; do
	command -v $wanted >/dev/null || { ktap_skip "what tshark shows" "no $wanted"; ktap_end; }
done
[ "$DRIVER" = sroce ] || { ktap_skip "what tshark shows" "this is about sroce's packets"; ktap_end; }
export PYTHONDONTWRITEBYTECODE=1
amount ROUNDS 20 100
JUDGE=$SELF/tshark_judge.py
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B WHERE=tshark

# seen CASE : the verdicts about what is in $TMP/pcap. What is inside of SENDs tshark would guess, and takes random data,
# or none, for protocols that it is not: it gets these protocols only.
seen() {
	local fields
	read -ra fields <<<"$(python3 "$JUDGE" --fields)"
	limit 120 tshark -r "$TMP/pcap" --only-protocols frame,eth,ethertype,ip,ipv6,udp,infiniband -T fields "${fields[@]}" \
		>"$TMP/frames" 2>"$TMP/tshark"
	result $? "$NAME: tshark reads it ($(wc -l <"$TMP/frames") frames)"
	notes 3 <"$TMP/tshark"
	program_verdicts "$NAME" 60 python3 "$JUDGE" "$1" "$TMP/frames" mtu=1024 \
		"qpns=$(grep -o 'lqpn [0-9]*' "$TMP/qpns" | cut -d ' ' -f 2 | sort -nu | paste -sd ,)" \
		"packets=$packets"
}
# watched NAME CASE COMMAND... : the command, while host B captures
watched() {
	local dumping asking before
	NAME=$1
	: >"$TMP/tcpdump"
	ip netns exec $B tcpdump -Z root -i veth0 -s 0 -B 65536 -w "$TMP/pcap" udp port 4791 >"$TMP/tcpdump" 2>&1 &
	dumping=$!
	wait_for 10 grep -q listening "$TMP/tcpdump"
	: >"$TMP/qpns"
	while sleep 0.1; do rdma resource show qp >>"$TMP/qpns"; done 2>/dev/null &
	asking=$!
	before=$(counter $B $DEV_B rdma_tx_packets rdma_rx_packets)
	"${@:3}"
	packets=$(($(counter $B $DEV_B rdma_tx_packets rdma_rx_packets) - before))
	sleep 0.5
	{ kill $asking $dumping && wait $asking $dumping; } 2>/dev/null
	grep -q '^0 packets dropped by kernel' "$TMP/tcpdump"
	result $? "$NAME: nothing is missing in the capture"
	seen "$2"
}
# connections LARGEST [IP_A IP_B] : all operations over reliable ones, in messages of no more than so many bytes. With
# few packets in a message all opcodes are there soon.
connections() {
	pair "$NAME: traffic" 120 "$ONE_CPU $VERIFY -d $DEV_A -i ${2:-$IP_A}" \
		"$ONE_CPU $VERIFY -d $DEV_B -i ${3:-$IP_B} -T 18 -n $ROUNDS -M 1024 -m $1 ${2:-$IP_A}"
}
segmentation() { # segmentation on|off : of the netdevs
	in_ns $A ethtool -K veth0 tx-udp-segmentation "$1" && in_ns $B ethtool -K veth0 tx-udp-segmentation "$1"
}

workers_on_one_cpu
devices_up 9000
stock_gids
tshark --version 2>/dev/null | head -n 1 | notes
watched "trains" trains connections 100000
if segmentation off; then
	watched "single packets" single connections 4000
	watched "single packets, IPv6" single connections 4000 $IP6_A $IP6_B
	watched "UC" uc perftest ib_write_bw -c UC -m 1024 -s 5000 -n 20
	has_xrc && watched "XRC" xrc perftest ib_send_bw -c XRC -m 1024 -s 5000 -n 20
	segmentation on
else
	ktap_skip "single packets" "no ethtool, or it cannot switch the netdev's segmentation off"
fi
watched "datagrams" ud pair "datagrams: traffic" 60 "$VERIFY_UD -d $DEV_A -i $IP_A" "$VERIFY_UD -d $DEV_B -i $IP_B -n 20 $IP_A"
watched "rdma_cm" cm pair "rdma_cm: traffic" 60 "rping -s -a $IP_A -C 5 -V" "rping -c -a $IP_A -C 5 -V"
if tc -n $B qdisc replace dev veth0 clsact && tc -n $B filter add dev veth0 egress pref 1 protocol ip matchall \
	action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h; then
	watched "congestion" cnp perftest ib_write_bw -s 4096 -n 100
	tc -n $B qdisc del dev veth0 clsact
else
	ktap_skip "congestion" "tc cannot mark packets"
fi
ktap_end
