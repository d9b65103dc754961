#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Somebody on the link who knows a host's addresses and nothing else. What he sends to queue pair 1 writes nothing into
# the kernel's log, whatever addresses it goes to and comes from, and keeps nobody from connecting, even if it comes
# from addresses that no host has; who has one is answered. Nor does ICMP about too big packets stop RoCE, which
# cannot send smaller ones.
. "$(dirname "$0")/lib.sh"

STRANGERS=$(program strangers) && VERIFY=$(program verify) || bail "strangers or verify was not built"
if [ "$DRIVER" != sroce ]; then
	ktap_skip "strangers" "$DRIVER is not asked for this"
	ktap_end
fi

# of another netdev of host A
ELSE=10.96.0.1 ELSE6=fd96::1
# host A's in a network that has room for many hosts
WIDE=10.97.0.1
# a second device's
BESIDE=10.99.0
PARAM=/sys/module/sroce/parameters
NOWHERE=192.0.2.7 NOWHERE6=2001:db8::7

marks=0

# mac_of NAMESPACE
mac_of() { in_ns "$1" cat /sys/class/net/veth0/address; }

# link_local [NAMESPACE] : of host A
link_local() { ip -n "${1:-$A}" -o addr show dev veth0 scope link | awk '{ sub("/.*", "", $4); print $4 }'; }

# stranger OPTION... : from host B to the MAC address of host A
stranger() { limit 40 in_ns $B "$STRANGERS" -i veth0 -M "$MAC_A" "$@"; }

up() {
	devices_up 9000
	MAC_A=$(mac_of $A)
	ip -n $A addr add $WIDE/16 dev veth0
	# who comes from nowhere is to come to the device, and not to be sorted out before
	on_a sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.veth0.rp_filter=0
	wait_gids $A $DEV_A veth0 || bail "no GID of $WIDE"
	on_b ping -qc 1 -W 5 $IP_A >/dev/null && on_b ping -qc 1 -W 5 $IP6_A >/dev/null || bail "the hosts do not see each other"
	: >"$TMP/listener"
	ip netns exec $A "$STRANGERS" -l $IP_A $IP6_A >"$TMP/listener" 2>&1 &
	wait_for 10 grep -q ready "$TMP/listener" || bail "nobody listens: $(tail -n 1 "$TMP/listener")"
}

# --- the kernel's log ------------------------------------------------------------------------------------

mark() { echo "strangers: mark $((marks += 1))" >/dev/kmsg; }

# told : lines of RDMA in the kernel's log since the mark; all there are, where the mark was pushed out by them
told() {
	dmesg | awk -v mark="strangers: mark $marks\$" '
		$0 ~ mark { n = 0; next }
		/infiniband|ib_|rdma|sroce|MAD|neighbour/ { n++ }
		END { print n + 0 }'
}

# answered KIND ADDRESS SOURCE [OPTION] : ten MADs of a host that there is are answered. The queue pair takes them in order: what was
# sent before has been looked at then.
answered() {
	stranger -k "$1" -D "$2" -s "$3" "${@:4}" -n 10 -w 10 >"$TMP/answers" 2>&1
	grep -q '^10 of 10 answered' "$TMP/answers"
}

# discarded NUMBER : so many packets have been, since $TMP/before; some may be lost on a busy link
discarded() {
	local before
	before=$(awk '$1 == "rx_discarded_packets" { print $2 }' "$TMP/before")
	[ $(($(counter "$A" "$DEV_A" rx_discarded_packets) - before)) -ge $(($1 * 9 / 10)) ]
}

# quiet NAME KIND ADDRESS SOURCE [OPTION] : 500 MADs that cannot be answered are nothing to tell anybody
quiet() {
	local lines
	mark
	counters $A $DEV_A >"$TMP/before"
	stranger -k "$2" -D "$3" -s "$4" "${@:5}" -n 500 -w 0.2 >"$TMP/shots" 2>&1
	answered get $IP_A $IP_B
	result $? "$1: then those of a host are answered"
	wait_for 5 discarded 500
	result $? "$1: they are discarded"
	lines=$(told)
	counters $A $DEV_A >"$TMP/after"
	note "$1: $(tail -n 1 "$TMP/shots"), $lines lines in the kernel's log; $(changed_counters "$TMP/before" "$TMP/after")"
	[ "$lines" -eq 0 ] && grep -q '^0 of 500 answered' "$TMP/shots"
	result $? "$1: nothing in the kernel's log"
}

elsewhere() {
	local kind
	ip -n $A link add else0 type dummy && ip -n $A link set else0 up && ip -n $A addr add $ELSE/24 dev else0 &&
		ip -n $A addr add $ELSE6/64 dev else0 nodad || bail "no dummy netdev"
	for kind in get unknown; do
		quiet "$kind, another netdev's address, IPv4" $kind $ELSE $IP_B
		quiet "$kind, another netdev's address, IPv6" $kind $ELSE6 $IP6_B
		quiet "$kind, the subnet's broadcast address" $kind 10.98.0.255 $IP_B
	done
	ip -n $A link del else0
}

from_nowhere() {
	local kind
	for kind in get unknown; do
		quiet "$kind, from nowhere, IPv6" $kind $IP6_A $NOWHERE6
		quiet "$kind, from nowhere, IPv4" $kind $IP_A $NOWHERE
	done
}

# mixed : IPv6 lets a source in that stands for an IPv4 address. To one of ours whose end could be an IPv4 address of ours,
# too, there seems to be a way back, by IPv4.
mixed() {
	local kind ours=fd98::$IP_A
	ip -n $A addr add $ours/64 dev veth0 nodad && wait_gids $A $DEV_A veth0 || bail "no GID of $ours"
	for kind in get unknown; do
		quiet "$kind, from an IPv4 address by IPv6" $kind $ours ::ffff:$IP_B
	done
	answered get $ours $IP6_B
	result $? "an IPv6 address that ends in an IPv4 address hears its peers"
	ip -n $A addr del $ours/64 dev veth0
}

# v1_sources : link-local addresses that have no MAC address in them to which an answer could go
v1_sources() {
	local kind source
	echo Y >$PARAM/roce_v1
	link_del $A $DEV_A && link_add $A $DEV_A || bail "no device with RoCE v1"
	answered get "$(link_local)" "$(link_local $B)" -1
	result $? "RoCE v1: a GET is answered, link-local"
	answered get $IP6_A $IP6_B -1
	result $? "RoCE v1: a GET is answered"
	for source in fe80:1::7 fe80::300:ff:fe00:1 fe80::200:ff:fe00:0; do
		for kind in get unknown; do
			quiet "RoCE v1: $kind, from $source" $kind "$(link_local)" $source -1
		done
	done
	echo N >$PARAM/roce_v1
}

# two : of two netdevs with the same address that one is asked which a packet has come through
two() {
	ip -n $A link add else1 type dummy && ip -n $A link set else1 up && ip -n $A addr add $IP_A/32 dev else1 &&
		ip -n $A addr add $IP6_A/128 dev else1 nodad || bail "no dummy netdev"
	answered get $IP_A $IP_B && answered get $IP6_A $IP6_B
	result $? "another netdev has the same addresses"
	ip -n $A link del else1
}

# --- too big ------------------------------------------------------------------------------------------------

# believed ADDRESS MTU : host A's stack does, what it was told about the path to there
believed() { ip -n $A route get "$1" | grep -q " mtu $2\>"; }

# too_big IP_OF_A IP_OF_B SOURCE MTU
too_big() {
	stranger -k pmtu -D "$1" -s "$3" -P "$2" -m "$4" && wait_for 5 believed "$2" "$4"
}

# big_packets NAME IP_OF_A IP_OF_B SOURCE MTU
big_packets() {
	local name=$1 ip=$2 our=$3 drops server client
	drops=$(counter $A $DEV_A tx_dropped_packets)
	: >"$TMP/bystander"
	limit 60 ip netns exec $A "$VERIFY" -d $DEV_A -i "$ip" --show-qps >"$TMP/bystander" 2>&1 &
	server=$!
	wait_for 10 listening $A
	limit 60 ip netns exec $B "$VERIFY" -d $DEV_B -i "$our" -M 4096 -t 2 "$ip" >"$TMP/peer" 2>&1 &
	client=$!
	wait_for 10 grep -q 'qp .*peer' "$TMP/bystander"
	sleep 0.5
	too_big "$ip" "$our" "$4" "$5"
	result $? "$name: the stack believes in an MTU of $5"
	undisturbed "$name: a stream at path MTU 4096 goes on" $server $client
	pair "$name: a new one comes about" 60 "$VERIFY -d $DEV_A -i $ip" "$VERIFY -d $DEV_B -i $our -M 4096 -n 3 $ip"
	believed "$our" "$5"
	result $? "$name: the stack still believes it"
	drops=$(($(counter $A $DEV_A tx_dropped_packets) - drops))
	note "$name: $drops packets dropped"
	[ $drops -eq 0 ]
	result $? "$name: nothing is dropped"
}

# --- connections --------------------------------------------------------------------------------------------

# messages of the connection managers of both hosts that were sent again
repeated() {
	cat /sys/class/infiniband/{$DEV_A,$DEV_B}*/ports/1/cm_tx_retries/* | awk '{ n += $1 } END { print n + 0 }'
}

# connects NAME IP COUNT MILLISECONDS : from B to A, each in that time, and no message has to be sent again
connects() {
	local before status took
	before=$(repeated)
	limit 60 in_ns $B "$STRANGERS" -c -n "$3" -w 12 "$2" >"$TMP/connect" 2>&1
	status=$?
	before=$(($(repeated) - before))
	note "$1: $(tail -n 1 "$TMP/connect"), $before messages sent again"
	took=$(sed -n 's/^.* took \([0-9]*\) ms$/\1/p' "$TMP/connect")
	[ $status -eq 0 ] && [ $before -eq 0 ] && [ "${took:-99999}" -lt $(($4 * SLOW)) ]
	result $? "$1"
}

# flood NAME KIND ADDRESS SOURCE IP : 300 of hosts that there are not, then ten a second; connections to IP meanwhile
flood() {
	local pid
	: >"$TMP/flood"
	counters $A $DEV_A >"$TMP/before"
	stranger -k "$2" -D "$3" -s "$4" -n 300 -e -t 2 >"$TMP/flood" 2>&1 &
	pid=$!
	wait_for 10 grep -q sent "$TMP/flood"
	connects "$1: connections meanwhile" "$5" 5 3000
	wait $pid
	result $? "$1: the flood is over"
	wait_for 5 discarded 300
	result $? "$1: it was discarded"
	connects "$1: and afterwards" "$5" 3 3000
}

# fresh NAME IP_OF_A IP_OF_B : host A has forgotten where B is, and B does not ask where A is, which would tell it
fresh() {
	local i n=0
	ip -n $B neigh replace "$2" lladdr "$MAC_A" nud permanent dev veth0
	for i in 1 2 3; do
		ip -n $A neigh del "$3" dev veth0
		[ -n "$(ip -n $A neigh show "$3")" ] || n=$((n + 1))
		connects "$1: a host that is not known yet, $i" "$2" 1 3000
	done
	ip -n $B neigh del "$2" dev veth0
	[ $n -eq 3 ]
	result $? "$1: it was not known"
}

# beside_flood : 800 of hosts that there are not do not keep a host away that is not known yet, on another device
beside_flood() {
	local pid listener mac
	ip link add veth1 netns $A mtu 9000 type veth peer name veth1 netns $B mtu 9000 || bail "no veth"
	ip -n $A addr add $BESIDE.1/24 dev veth1 && ip -n $A link set veth1 up &&
		ip -n $B addr add $BESIDE.2/24 dev veth1 && ip -n $B link set veth1 up || bail "no addresses"
	link_add $A ${DEV_A}b veth1 && link_add $B ${DEV_B}b veth1 || bail "no second device"
	mac=$(in_ns $A cat /sys/class/net/veth1/address)
	ip -n $B neigh replace $BESIDE.1 lladdr "$mac" nud permanent dev veth1
	: >"$TMP/beside"
	ip netns exec $A "$STRANGERS" -l $BESIDE.1 >"$TMP/beside" 2>&1 &
	listener=$!
	wait_for 10 grep -q ready "$TMP/beside" || bail "nobody listens: $(tail -n 1 "$TMP/beside")"
	: >"$TMP/flood"
	stranger -k req -D $WIDE -s 10.97.8.0 -n 800 -e -t 2 >"$TMP/flood" 2>&1 &
	pid=$!
	wait_for 10 grep -q sent "$TMP/flood"
	connects "beside a flood: a host that is not known yet" $BESIDE.1 1 3000
	wait $pid
	result $? "beside a flood: it is over"
	kill $listener
	wait $listener 2>/dev/null
	link_del $A ${DEV_A}b && link_del $B ${DEV_B}b && ip -n $A link del veth1
	result $? "beside a flood: the other device goes"
}

up
answered get $IP_A $IP_B
result $? "a GET is answered, IPv4"
answered get $IP6_A $IP6_B
result $? "a GET is answered, IPv6"
answered req $IP_A $IP_B
result $? "a REQ for what nobody offers is refused, IPv4"
answered req $IP6_A $IP6_B
result $? "a REQ for what nobody offers is refused, IPv6"
connects "connections, IPv4" $IP_A 3 3000
connects "connections, IPv6" $IP6_A 3 3000
CLIENT_NS=$A pair "a host connects to itself, link-local" 30 "rping -s -a $(link_local)%veth0 -C 3" "rping -c -a $(link_local)%veth0 -C 3"
fresh "IPv4" $IP_A $IP_B
fresh "IPv6" $IP6_A $IP6_B
beside_flood
elsewhere
mixed
two
big_packets "too big, IPv4" $IP_A $IP_B 10.98.0.77 552
big_packets "too big, IPv6" $IP6_A $IP6_B fd98::77 1280
# whatever has to wait for something, those after it wait, too: what takes longest comes last
flood "REQs, IPv4" req $WIDE 10.97.4.0 $IP_A
flood "REQs, IPv6" req $IP6_A fd98::2:0 $IP6_A
from_nowhere
flood "GETs, IPv4" get $WIDE 10.97.1.0 $IP_A
flood "GETs, IPv6" get $IP6_A fd98::1:0 $IP6_A
answered get $IP_A $IP_B
result $? "a GET is still answered"
v1_sources
stranger -k get -D $IP6_A -s fd98::3:0 -n 300 -e >"$TMP/shots" 2>&1
check "a device goes while some wait for their answers" 20 in_ns $A rdma link del $DEV_A
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
