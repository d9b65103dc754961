#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# RoCE v1 (module parameter roce_v1): GIDs of both versions; every service, rdma_cm and groups over frames of EtherType
# 0x8915, each of which an independent receiver checks; both versions at once; VLANs; hosts whose rdma_cm prefers
# different versions; and frames from somebody who does not keep to the standard.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"
. "$SELF/marked.sh"

VERIFY=$(program verify) && VERIFY_UD=$(program verify_ud) && CHECK=$(program icrc_check) && MCAST=$(program mcast) &&
	FRAMES=$(program frames) && STRAY=$(program stray) || bail "verify, icrc_check, mcast, frames or stray was not built"
[ "$DRIVER" = sroce ] || { ktap_skip "RoCE v1" "rdma_rxe speaks RoCE v2 only"; ktap_end; }
amount n 100 1000
amount ROUNDS 1 3
# in_full COMMAND... : what the short form leaves out
in_full() { [ "$SET" != full ] || "$@"; }
amount HOSTILE 5000 500000
PARAM=/sys/module/sroce/parameters
CM=/sys/kernel/config/rdma_cm
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B
as_before() {
	driver_loaded && echo N >"$PARAM/roce_v1" && echo Y >"$PARAM/direct"
	rmdir "$CM"/* 2>/dev/null
}
driver_load
trap 'as_before; finish' EXIT

# --- GIDs ---------------------------------------------------------------------------------------------------

# types ADDRESS : of its GIDs, in the order of the table
types() { gid_table $A $DEV_A | awk -v gid="$(gid_of "$1")" '$2 == gid { printf "%s ", $NF }'; }
each_has() {
	local address n=0
	for address in $(netdev_addresses $A veth0); do
		[ "$(types "$address")" = "$1" ] || return
		n=$((n + 1))
	done
	[ $n -ge 3 ]
}

devices_up 9000
before=$(gid_table $A $DEV_A)
each_has "v2 "
result $? "a device made without roce_v1: each address has one GID, of RoCE v2"
echo Y >$PARAM/roce_v1
[ "$(gid_table $A $DEV_A)" = "$before" ]
result $? "it stays as it is when roce_v1 is set"
devices_up 9000
wait_for 10 each_has "v1 v2 "
result $? "a device made with roce_v1: each address has two"
gid_table $A $DEV_A | notes 20
ip -n $A link add d0 type dummy && ip -n $A link set d0 up && link_add $A srt_d d0 && link_del $A srt_d
result $? "so has one of a netdev without a peer"
link_add $A srt_lo lo
gid_table $A srt_lo >"$TMP/lo" && grep -q 'v2$' "$TMP/lo" && ! grep -q 'v1$' "$TMP/lo"
result $? "one of lo has RoCE v2 only"
link_del $A srt_lo

# --- every service, and each frame ----------------------------------------------------------------------------

# A window of single packets is more than the stack queues for a processor by itself
backlog=/proc/sys/net/core/netdev_max_backlog
saved=$(cat $backlog)
workers_on_one_cpu
trap 'echo $saved >$backlog; workers_anywhere; as_before; finish' EXIT
echo 30000 >$backlog

# verify IP_A IP_B [OPTIONS]
verify() {
	pair "verify, $1 $3" 120 "$ONE_CPU $VERIFY -d $DEV_A -i $1" "$ONE_CPU $VERIFY -d $DEV_B -i $2 -T 18 -n $ROUNDS $3 $1"
}
datagrams() {
	pair "datagrams, $1 $3" 60 "$VERIFY_UD -d $DEV_A -i $1 $3" "$VERIFY_UD -d $DEV_B -i $2 -n $n $3 $1"
}

export ROCE=v1
WHERE="RoCE v1"
stock_gids
marked "MTU 4096" -1 verify $IP_A $IP_B
in_full marked "MTU 1024, IPv6 addresses" -1 verify $IP6_A $IP6_B "-M 1024"
in_full marked "traffic class" "-1 -C 0x68" verify $IP_A $IP_B "-C 0x6a"
ONE_WAY=1 marked "datagrams" -1 datagrams $IP_A $IP_B
ONE_WAY=1 in_full marked "datagrams, IPv6 addresses" -1 datagrams $IP6_A $IP6_B
in_full marked "stock tools" -1 eval "pingpong 'ibv_rc_pingpong' ibv_rc_pingpong -n 100 -c; pingpong 'ibv_ud_pingpong' ibv_ud_pingpong -n 100;
	perftest ib_read_bw -q 4 -s 65536 -n $n"
in_full pingpong "ibv_uc_pingpong" ibv_uc_pingpong -n 100 -c
in_full perftest ib_send_bw -c UC -s 65536 -n "$n"
! has_xrc || in_full perftest ib_send_bw -c XRC -q 4 -s 4096 -n "$n"
link_local() { ip -n "$1" -o addr show dev veth0 scope link | awk '{ sub("/.*", "", $4); print $4 }'; }
in_full marked "link-local GIDs" -1 pair "verify, link-local GIDs" 120 "$VERIFY -d $DEV_A -i $(link_local $A)" \
	"$VERIFY -d $DEV_B -i $(link_local $B) -T 18 -n $ROUNDS $IP_A"
echo "$saved" >$backlog
workers_anywhere
trap 'as_before; finish' EXIT

# --- both at once, and not mixed -------------------------------------------------------------------------------

both_at_once() {
	local other outer=$TMP
	(
		export ROCE=v2
		run_pair 120 "$A" "$VERIFY -d $DEV_A -i $IP_A -p 7001" "$B" "$VERIFY -d $DEV_B -i $IP_B -T 18 -n 4 -p 7001 $IP_A" >"$TMP/other"
	) &
	other=$!
	TMP=$outer/second && mkdir "$TMP"
	pair "both versions at once: verify over RoCE v1" 120 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -T 18 -n 4 $IP_A"
	TMP=$outer
	wait "$other" || { notes <"$TMP/other"; false; }
	result $? "both versions at once: verify over RoCE v2"
}
in_full both_at_once

# The server takes its GID from RoCE v2, the client from RoCE v1: neither hears the other
before=$(counter $A $DEV_A rx_wrong_path_packets)
limit 60 ip netns exec $A env ROCE=v2 "$VERIFY" -d $DEV_A -i $IP_A >"$TMP/server" 2>&1 &
wait_for 5 listening $A
! limit 60 in_ns $B "$VERIFY" -d $DEV_B -i $IP_B -T 8 -n 1 $IP_A >"$TMP/client" 2>&1
result $? "a connection between the two versions transfers nothing"
kill %% 2>/dev/null
wait
note "rx_wrong_path_packets: $(($(counter $A $DEV_A rx_wrong_path_packets) - before))"
[ "$(counter $A $DEV_A rx_wrong_path_packets)" -gt "$before" ]
result $? "what was sent is counted as from somewhere else"

# --- one host ----------------------------------------------------------------------------------------------------

directs=(N)
in_full eval "directs=(Y N)"
for direct in "${directs[@]}"; do
	echo "$direct" >$PARAM/direct
	CLIENT_NS=$A pair "one device, direct=$direct: verify" 120 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_A -i $IP_A -n $ROUNDS $IP_A"
	CLIENT_NS=$A pair "one device, direct=$direct: datagrams" 60 "$VERIFY_UD -d $DEV_A -i $IP_A" "$VERIFY_UD -d $DEV_A -i $IP_A -n $n $IP_A"
done
echo Y >$PARAM/direct

# --- rdma_cm ---------------------------------------------------------------------------------------------------------

# cm_mode DEVICE v1|v2 : what its connections want by themselves, as cma_roce_mode sets it
cm_mode() {
	local mode="RoCE v2"
	[ "$2" = v2 ] || mode="IB/RoCE v1"
	mkdir -p "$CM/$1" && echo "$mode" >"$CM/$1/ports/1/default_roce_mode"
}
# frames NAMESPACE : of RoCE v1 that have come to its netdev
watch_frames() {
	tc -n "$1" qdisc replace dev veth0 clsact && tc -n "$1" filter add dev veth0 ingress pref 1 protocol 0x8915 matchall action ok
}
frames() { tc -n "$1" -s filter show dev veth0 ingress pref 1 | awk '/Sent/ { n += $4 } END { print n + 0 }'; }

# connections A_MODE B_MODE : the client is on host B, and its mode is what counts
connections() {
	local before
	cm_mode $DEV_A "$1" && cm_mode $DEV_B "$2" || bail "no configfs of rdma_cm"
	before=$(frames $A)
	pair "rdma_cm, server prefers $1, client $2: rping" 30 "rping -s -a $IP_A -C 10 -V" "rping -c -a $IP_A -C 10 -V"
	in_full pair "rdma_cm, server prefers $1, client $2: rping, IPv6" 30 "rping -s -a $IP6_A -C 10 -V" "rping -c -a $IP6_A -C 10 -V"
	pair "rdma_cm, server prefers $1, client $2: udaddy" 30 "udaddy -b $IP_A -C 10 -S 500" "udaddy -s $IP_A -C 10 -S 500"
	note "$(($(frames $A) - before)) frames of RoCE v1 came to host A"
	if [ "$2" = v1 ]; then [ "$(frames $A)" -gt $((before + 20)) ]; else [ "$(frames $A)" -eq "$before" ]; fi
	result $? "rdma_cm, server prefers $1, client $2: connections are of RoCE $2"
}
watch_frames $A || bail "tc cannot count frames"
in_full connections v1 v1
connections v1 v2
connections v2 v1
in_full connections v2 v2
cm_mode $DEV_A v1
CLIENT_NS=$A pair "rdma_cm over RoCE v1 on one device: rping" 30 "rping -s -a $IP_A -C 10 -V" "rping -c -a $IP_A -C 10 -V"

# --- groups -----------------------------------------------------------------------------------------------------------

C=srtest_c DEV_C=srt_c
cm_mode $DEV_B v1
mckey_pair $A $IP_A $B $IP_B 239.98.1.2 -S 500
result $? "rdma_cm: mckey, IPv4"
mckey_ipv6() {
	mckey_pair "$A" "$IP6_A" "$B" "$IP6_B" ff0e::98:2 -S 500
	result $? "rdma_cm: mckey, IPv6"
}
in_full mckey_ipv6
rmdir "$CM/"* 2>/dev/null

# A third host; with an MTU below IPv6's least none of the netdevs has IPv6, so that only their filters can be told of a
# group of that kind
three_down() {
	link_del "$C" "$DEV_C" 2>/dev/null
	hosts_down
	ip netns del "$C" 2>/dev/null
	return 0
}
trap 'as_before; three_down; finish' EXIT
# plug NAMESPACE N : a host's cable to the bridge in host C, which is the switch as well
plug() {
	ip link add veth0 netns "$1" mtu 1200 type veth peer name "port$2" netns "$C" mtu 1200 || return
	ip -n "$C" link set "port$2" master br0 up
	ip -n "$1" link set veth0 up
	ip -n "$1" addr add "10.98.0.$2/24" dev veth0
}
three_up() {
	three_down
	host_ns "$A" && host_ns "$B" && host_ns "$C" || return
	ip -n "$C" link add br0 mtu 1200 type bridge mcast_snooping 0 && ip -n "$C" addr add 10.98.0.3/24 dev br0 &&
		ip -n "$C" link set br0 up && plug "$A" 1 && plug "$B" 2 || return
	link_add "$A" "$DEV_A" && link_add "$B" "$DEV_B" && link_add "$C" "$DEV_C" br0
}
groups_of_three() {
	three_up || bail "no three hosts"
	program_verdicts "IPv4 group" 120 "$MCAST" -g 239.98.1.2 -c "ip -n $B maddr show dev veth0 | grep -qw 239.98.1.2" \
		-d "$DEV_A" -i "$IP_A" -d "$DEV_B" -i "$IP_B" -d "$DEV_C" -i 10.98.0.3
	program_verdicts "IPv6 group, where there is no IPv6" 120 "$MCAST" -g ff0e::ffff:a62:102 \
		-c "ip -n $B maddr show dev veth0 | grep -qw 33:33:0a:62:01:02" -d "$DEV_A" -i "$IP_A" -d "$DEV_B" -i "$IP_B" -d "$DEV_C" -i 10.98.0.3
	ip -n "$B" maddr show dev veth0 >"$TMP/maddr" && ! grep -q 33:33:0a:62:01:02 "$TMP/maddr"
	result $? "the netdev's filter has forgotten the group"
	three_down
}
in_full groups_of_three
trap 'as_before; finish' EXIT

# --- VLANs --------------------------------------------------------------------------------------------------------------

devices_up 9000
vlans() {
	local ns n=0
	for ns in $A $B; do
		n=$((n + 1))
		ip -n "$ns" link add t0 link veth0 type vlan id 7 egress-qos-map 0:0 5:5 &&
			ip -n "$ns" link set t0 addrgenmode none && ip -n "$ns" link set t0 up &&
			ip -n "$ns" addr add 10.99.0.$n/24 dev t0 || return
	done
	wait_gids $A $DEV_A t0 && wait_gids $B $DEV_B t0
}
if vlans; then
	[ -n "$SHORT" ] || marked "VLAN" "-1 -V 7 -P 5" verify 10.99.0.1 10.99.0.2 "-L 5"
	ONE_WAY=1 in_full marked "VLAN, datagrams" "-1 -V 7 -P 5" datagrams 10.99.0.1 10.99.0.2 "-L 5"
else
	ktap_skip "VLAN" "no VLANs in this kernel"
fi

# --- who is heard ----------------------------------------------------------------------------------------------------------

# heard NAME DATAGRAMS MESSAGES NAMESPACE OPTIONS... : so many of 16 that somebody sends to queue pairs that wait for them,
# at host A's address $AT, the connected one for messages from $PEER
heard() {
	local name=$1 wanted="got $2 $3" ns=$4 pid ud uc
	shift 4
	: >"$TMP/stray"
	ip netns exec $A "$STRAY" -d $DEV_A -i "${AT:-$IP_A}" ${PEER:+-p "$PEER"} >"$TMP/stray" 2>&1 &
	pid=$!
	wait_for 5 grep -q '^[0-9]' "$TMP/stray"
	read -r ud uc <"$TMP/stray"
	in_ns "$ns" "$FRAMES" -n 16 -q "$ud" "$@" >"$TMP/out" 2>&1 && in_ns "$ns" "$FRAMES" -n 16 -c -q "$uc" "$@" >>"$TMP/out" 2>&1 ||
		{ notes <"$TMP/out"; wanted="that all are sent"; }
	sleep 0.3
	kill $pid
	wait $pid
	note "$name: $(tail -n 1 "$TMP/stray"), of 16 datagrams and 16 messages"
	[ "$(tail -n 1 "$TMP/stray")" = "$wanted" ]
	result $? "heard: $name"
}
# The link-local address that a MAC address makes
ipv6_of_mac() {
	local b
	IFS=: read -ra b <<<"$1"
	printf 'fe80::%02x%s:%sff:fe%s:%s%s\n' $((0x${b[0]} ^ 2)) "${b[1]}" "${b[2]}" "${b[3]}" "${b[4]}" "${b[5]}"
}
mac_of() { in_ns "$1" cat "/sys/class/net/$2/address"; }
mac=$(mac_of $A veth0)
ip -n $A link add d1 type dummy && ip -n $A addr add 10.97.0.1/24 dev d1 && ip -n $A link set d1 up
# "stray" is connected to its own address, which is why no message from elsewhere is for it
heard "datagrams from another host" 16 0 $B -i veth0 -m "$mac" -a $IP_A -S $IP_B
heard "from an address that nobody has" 16 0 $B -i veth0 -m "$mac" -a $IP_A -S 10.1.2.3
heard "for an address that this host has not" 0 0 $B -i veth0 -m "$mac" -a 10.98.0.77 -S $IP_B
heard "for that of another netdev" 0 0 $B -i veth0 -m "$mac" -a 10.97.0.1 -S $IP_B
heard "for that of lo" 0 0 $B -i veth0 -m "$mac" -a 127.0.0.1 -S $IP_B
heard "broadcast" 0 0 $B -i veth0 -m ff:ff:ff:ff:ff:ff -a $IP_A -S $IP_B
heard "for another MAC address" 0 0 $B -i veth0 -m 02:00:00:00:00:01 -a $IP_A -S $IP_B
heard "from this host's address" 0 0 $B -i veth0 -m "$mac" -a $IP_A -S $IP_A
heard "from its link-local address" 0 0 $B -i veth0 -m "$mac" -a $IP_A -S "$(link_local $A)"
heard "from a group" 0 0 $B -i veth0 -m "$mac" -a $IP_A -S 239.1.2.3
heard "from nowhere" 0 0 $B -i veth0 -m "$mac" -a $IP_A -S ::
heard "as GSO frames" 0 0 $B -i veth0 -m "$mac" -a $IP_A -S $IP_B -g
heard "on a VLAN, where another address is" 0 0 $B -i t0 -m "$mac" -a $IP_A -S $IP_B
heard "on a VLAN, for the default GID" 0 0 $B -i t0 -m "$mac" -a "$(link_local $A)" -S $IP_B
heard "on a VLAN, for its address" 16 0 $B -i t0 -m "$mac" -a 10.99.0.1 -S 10.99.0.2
# A VLAN mostly has the link-local address of the netdev below it, which does not make it the same link
ip -n $A addr add "$(link_local $A)/64" dev t0 nodad
wait_gids $A $DEV_A t0
AT=$(link_local $A) PEER=$(link_local $B)
heard "from the peer, both with link-local addresses" 16 16 $B -i veth0 -m "$mac" -a "$AT" -S "$PEER"
heard "from its address, but on a VLAN whose address is the same" 16 0 $B -i t0 -m "$mac" -a "$AT" -S "$PEER"
# RoCE v2: over IPv6 nobody has asked before whether another host can have sent them
heard_v2() { ROCE=v2 heard "RoCE v2: $1" 16 "$2" $B -2 -i veth0 -m "$mac" -a "$AT" -S "${PEER:-$AT}"; }
AT=$IP6_A PEER=$IP6_B
heard_v2 "from the peer" 16
PEER=''
heard_v2 "connected within this host: from its address, but from another host" 0
AT=$(link_local $A)
heard_v2 "the same, link-local" 0
AT='' PEER=''
ip -n $A link del d1

# A netdev's port in a bridge keeps the GID that is made of its MAC address
ip -n $A link add br0 type bridge && ip -n $A link set br0 address 02:98:00:00:00:77 up && ip -n $A link set veth0 master br0 &&
	ip -n $A addr flush dev veth0
gid_table $A $DEV_A | notes 5
AT=$(ipv6_of_mac "$mac") PEER=$(link_local $B)
heard "port of a bridge, default GID" 16 16 $B -i veth0 -m "$mac" -a "$AT" -S "$PEER"
AT='' PEER=''
ip -n $A link set veth0 nomaster && ip -n $A link del br0 && ip -n $A addr add $IP_A/24 dev veth0 && ip -n $A addr add $IP6_A/64 dev veth0 nodad
wait_gids $A $DEV_A veth0

# A packet that is longer than the netdev's MTU is now, is lost
for ns in $A $B; do ip -n "$ns" link set veth0 mtu 9000; done
limit 120 ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A >"$TMP/server" 2>&1 &
wait_for 5 listening $A
limit 60 ip netns exec $B "$VERIFY" -d $DEV_B -i $IP_B -T 10 -t 20 $IP_A >"$TMP/client" 2>&1 &
client=$!
sleep 2
watched_frames=$(in_ns $B cat /sys/class/net/veth0/statistics/tx_packets)
ip -n $B link set veth0 mtu 1500
! wait $client
result $? "a path MTU that does not fit any more ends a connection"
note "$(tail -n 1 "$TMP/client") ($(($(in_ns $B cat /sys/class/net/veth0/statistics/tx_packets) - watched_frames)) frames)"
kill %% 2>/dev/null
wait
ip -n $B link set veth0 mtu 9000

# --- what others send ------------------------------------------------------------------------------------------------------

hostile_splats=$(splats)
limit 120 ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A >"$TMP/bystander" 2>&1 &
bystander=$!
wait_for 5 listening $A
limit 120 ip netns exec $B "$VERIFY" -d $DEV_B -i $IP_B -T 18 -n 6 $IP_A >"$TMP/peer" 2>&1 &
peer=$!
sleep 0.5
qpn=$(in_ns $A rdma resource show qp link $DEV_A/1 | awk '/type RC/ { for (i = 1; i < NF; i++) if ($i == "lqpn") print $(i + 1); exit }')
for address in $IP_A $IP6_A; do
	check "hostile frames to $address, queue pair ${qpn:-none}" 120 in_ns $B "$FRAMES" -i veth0 -m "$mac" -a "$address" -n "$HOSTILE" -q "${qpn:-17}"
	notes 1 <"$TMP/out"
done
undisturbed "a transfer beside them" $bystander $peer
note "$(counters $A $DEV_A | awk '/^rx_(malformed|icrc|no_qp|wrong|discards|bad)/ && $2 { printf "%s %s ", $1, $2 }')"
[ "$(counter $A $DEV_A rx_malformed_packets)" -gt 0 ] && [ "$(counter $A $DEV_A rx_icrc_encapsulated)" -gt 0 ]
result $? "they have come to the device"
pair "a newcomer" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 1 $IP_A"

# A device without roce_v1 hears nothing of them
echo N >$PARAM/roce_v1
link_del $A $DEV_A && link_add $A $DEV_A
check "frames for a device that speaks RoCE v2 only" 60 in_ns $B "$FRAMES" -i veth0 -m "$mac" -a $IP_A -n 1000
counters $A $DEV_A >"$TMP/counters" && [ -s "$TMP/counters" ] && ! awk '/^rx_/ && $2 { print; bad = 1 } END { exit !bad }' "$TMP/counters"
result $? "it does not look at them"
unset ROCE
pair "RoCE v2 afterwards" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 1 $IP_A"
unharmed "$hostile_splats"
