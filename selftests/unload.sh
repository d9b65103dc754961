#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# unload.sh : a queue discipline that keeps every packet, a neighbour whose address nobody tells, a peer that is silent, a
# page that does not come. Queue pairs, processes, the RDMA link, the netdev, its namespace and the module go within seconds
# all the same; and what a queue keeps is bounded, and may come out of it when the module is no more. What an administrator
# asks for meanwhile, he gets.
. "$(dirname "$0")/lib.sh"
. "$SELF/exclusive.sh"

PLUGGED=$(program plugged) && STUCK=$(program stuck) && VERIFY=$(program verify) || bail "plugged, stuck or verify was not built"
ENDS=(-d "$DEV_A" -i "$IP_A" -D "$DEV_B" -I "$IP_B")
export SLOW
exec 2>"$TMP/jobs"

# --- queue disciplines that keep what they are given -----------------------------------------------------------

qdisc() { tc -n $A qdisc "$@"; }
plug_of() {
	case $1 in
	plug) echo "plug limit 100000000" ;;
	netem) echo "netem limit 100000 delay 200s" ;;
	tbf) echo "tbf rate 8bit burst 10kb limit 100000000" ;;
	fq) echo "fq limit 1000000 flow_limit 1000000 maxrate 8kbit" ;;
	esac
}

# stops KIND : the command that makes packets hang
stops() {
	case $1 in
	neighbour) echo "ip netns exec $A $TMP/forget" ;;
	*) echo "tc -n $A qdisc replace dev veth0 root $(plug_of "$1")" ;;
	esac
}

# bytes that it keeps
backlog() { tc -n $A -s -j qdisc show dev veth0 | grep -o '"backlog":[0-9]*' | head -n 1 | cut -d: -f2; }
unknown() { [[ $(ip -n $A neigh show $IP_B dev veth0) == *INCOMPLETE* ]]; }
hangs() {
	case $PLUG in
	*forget) unknown ;;
	*) [ "$(backlog)" -gt 0 ] ;;
	esac
}

# has QDISC : does this kernel have it?
has() {
	# shellcheck disable=SC2046 # words
	qdisc replace dev veth0 root $(plug_of "$1") 2>"$TMP/out" && qdisc del dev veth0 root && return
	ktap_skip "$1" "$(tail -n 1 "$TMP/out")"
	return 1
}

# hold : a process whose packets hang, $holder
hold() {
	: >"$TMP/hold"
	# shellcheck disable=SC2086 # words
	: >"$TMP/hold"
	"$PLUGGED" "${ENDS[@]}" hold >"$TMP/hold" 2>&1 &
	holder=$!
	wait_for 20 grep -q '^plugged' "$TMP/hold" && wait_for 20 hangs || { notes <"$TMP/hold"; return 1; }
}
ended() { ! kill -0 "$1"; }

# unloads : the module goes; its status is that of rmmod, 124 when it hangs
unloads() {
	rmmod "$(driver_module)" &
	wait_for 10 ended $! || return 124
	wait $!
}

by_kill() { kill -9 "$holder"; }
by_link() { limit 10 ip netns exec "$A" rdma link del "$DEV_A"; }
by_netdev() { limit 10 ip -n "$A" link del veth0; }
by_namespace() { limit 10 ip netns del "$A"; }
by_module() {
	kill -9 "$holder"
	wait_for 5 ended "$holder"
	unloads
}

# vanishes QDISC WAY : somebody goes while packets hang
vanishes() {
	local name="$1: $2" start status
	PLUG=$(stops "$1")
	export PLUG
	if ! hold; then
		ktap_fail "$name: nothing hangs"
		return
	fi
	start=$SECONDS
	"by_$2"
	status=$?
	result $status "$name ($((SECONDS - start)) s)"
	kill -9 $holder
	wait_for 5 ended $holder
	result $? "$name: the process ends"
	case $2 in
	kill | link | module)
		hangs
		result $? "$name: and its packets are still there"
		;;
	esac
	# those that the module has left behind come out of the queue, as far as that can be
	[ "$1-$2" != plug-module ] || qdisc change dev veth0 root plug release_indefinite
	[ "$1-$2" != neighbour-module ] || found
	[ "$2" != module ] || sleep 0.2
	devices_up 9000
}

# goes_on KIND : for an administrator, while packets hang
goes_on() {
	PLUG=$(stops "$1")
	export PLUG
	if ! hold; then
		ktap_fail "$1: an administrator: nothing hangs"
		return
	fi
	administered "$1"
	kill -9 $holder
	wait_for 5 ended $holder
	result $? "$1: the process ends"
	devices_up 9000
}

# waits NAME COMMAND HANGS : traffic between two hosts, each with its device for itself, which the command makes hang, as the
# other one sees; and then the device moves to another namespace
waits() {
	local name=$1 server client
	if ! exclusive_up; then
		ktap_skip "$name: a device that moves" "there are other namespaces"
		return
	fi
	# Host A has requests under way all the time; with 4 s for each of seven retries it does not give up meanwhile
	ip netns exec $B "$VERIFY" -d $DEV_B -i $IP_B -S 100 >"$TMP/server" 2>&1 &
	server=$!
	wait_for 10 listening $B
	ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A -S 100 -t 100 -T 20 --one-way $IP_B >"$TMP/client" 2>&1 &
	client=$!
	wait_for 10 eval "[ \$(in_ns $A rdma resource show qp | grep -c 'state RTS.*comm verify') -ge 4 ]"
	eval "$2" && wait_for 20 eval "$3" && kill -0 $server $client
	result $? "$name: packets hang, for a device that moves"
	moves "$name"
	kill -9 $server $client
	wait_for 5 ended $server && wait_for 5 ended $client
	result $? "$name: a device that moved: the processes end"
	exclusive_down
}

# floods QDISC : what one queue pair can leave there. (netem itself takes packets off the account of whoever sent them.)
floods() {
	local bytes
	program_verdicts "$1" 120 "$PLUGGED" "${ENDS[@]}" flood
	bytes=$(backlog)
	[ "$bytes" -gt 0 ] && [ "$bytes" -lt $((8 * 1024 * 1024)) ]
	result $? "$1: of 64 MiB of datagrams $bytes bytes hang there"
	qdisc del dev veth0 root
}

# crowds : what all queue pairs together can, also those that are gone: a device gets half of a 16th of the machine's memory
crowds() {
	local bytes most
	most=$(awk '/^MemTotal/ { most = $2 * 1024 / 32; if (most < 32 * 1048576) most = 32 * 1048576; print int(most) }' /proc/meminfo)
	export PLUG="tc -n $A qdisc replace dev veth0 root plug limit 2000000000"
	program_verdicts "many queue pairs" 300 "$PLUGGED" "${ENDS[@]}" crowd
	bytes=$(backlog)
	[ "$bytes" -gt 0 ] && [ "$bytes" -le "$most" ]
	result $? "many queue pairs: $bytes bytes hang there, of $most"
	qdisc del dev veth0 root
}

driver_load
devices_up 9000
for kind in plug netem tbf fq; do
	has $kind || continue
	# requests and destruction
	PLUG="tc -n $A qdisc replace dev veth0 root $(plug_of $kind)"
	export PLUG
	program_verdicts "$kind" 60 "$PLUGGED" "${ENDS[@]}" verbs
	qdisc del dev veth0 root
	[ $kind = netem ] || floods $kind
	goes_on $kind
	ways=module
	[ $kind != plug ] || ways="kill link netdev namespace module"
	for way in $ways; do
		vanishes $kind "$way"
	done
	[ $kind != plug ] || crowds
done

# --- a neighbour whose hardware address nobody tells --------------------------------------------------------------

# What waits for it is kept by the neighbour, and was handed to the stack without a reference to its route
cat >"$TMP/forget" <<-END
	#!/bin/sh
	echo 10000 >/proc/sys/net/ipv4/neigh/veth0/mcast_solicit
	ip -n $B link set veth0 arp off
	ip neigh flush dev veth0
	ip neigh del $IP_B dev veth0 2>/dev/null
	exit 0
END
chmod +x "$TMP/forget"

# found : it is asked for once per second, and answers: what has waited comes there, where nobody is any more
found() {
	ip -n $B link set veth0 arp on
	wait_for 10 for_nobody
	result $? "neighbour: what the module has left behind is sent"
}
for_nobody() { in_ns "$B" cat /proc/net/snmp | awk '/^Udp: [0-9]/ { n = $3 } END { exit !n }'; }

goes_on neighbour
for way in kill link netdev namespace module; do
	vanishes neighbour $way
done

# --- a netdev that couples buffers of several senders' packets ---------------------------------------------------

# coupled : the stack cuts up what a queue pair sends, and the other end of the link couples the pieces (GRO). What the queue
# pair was charged for each comes back to it: this is many times what it may have in the stack.
coupled() {
	local ns packets trains
	devices_up 9000
	for ns in $A $B; do
		if ! in_ns "$ns" ethtool -K veth0 tso off tx-udp-segmentation off gro on >"$TMP/ethtool" 2>&1; then
			ktap_skip "coupled" "$(tail -n 1 "$TMP/ethtool")"
			return
		fi
	done
	pair "coupled: data" 60 "$VERIFY -d $DEV_A -i $IP_A -S 30" "$VERIFY -d $DEV_B -i $IP_B -S 30 -t 5 -m 262144 $IP_A"
	packets=$(counter $A $DEV_A rdma_rx_packets) trains=$(counter $A $DEV_A rx_trains)
	[ "$packets" -gt 20000 ] && [ "$packets" -gt $((2 * trains)) ]
	result $? "coupled: $packets packets came in $trains buffers"
	hosts_down
	unloads
	result $? "coupled: the module goes"
	driver_load
	devices_up 9000
}
coupled

# --- a peer that does not answer --------------------------------------------------------------------------------

PLUG=true
export PLUG
cat >"$TMP/silence" <<-END
	table inet silent {
		chain in {
			type filter hook prerouting priority -300;
			udp dport 4791 counter drop
		}
	}
END
# how to see that something was dropped; empty where nothing can be
silence=''
if on_b nft -f "$TMP/silence"; then
	silence="in_ns $B nft list ruleset | grep -q 'packets [1-9]'"
	ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A >"$TMP/server" 2>&1 &
	server=$!
	wait_for 10 listening $A
	ip netns exec $B "$VERIFY" -d $DEV_B -i $IP_B $IP_A >"$TMP/client" 2>&1 &
	client=$!
	wait_for 10 eval "$silence"
	result $? "silent peer: requests are not answered"
	administered "silent peer"
	kill -9 $server $client
	wait_for 5 ended $server && wait_for 5 ended $client
	result $? "silent peer: the processes end"
	unloads
	result $? "silent peer: the module goes"
	on_b nft delete table inet silent
	devices_up 9000
else
	ktap_skip "silent peer" "no nftables"
fi

# --- a device that moves to another namespace --------------------------------------------------------------------

hosts_down
PLUG=''
waits plug "$(stops plug)" hangs
PLUG=$(stops neighbour)
waits neighbour "$PLUG" hangs
if [ -n "$silence" ]; then
	waits "silent peer" "on_b nft -f $TMP/silence" "$silence"
fi
devices_up 9000

# --- a page that does not come ------------------------------------------------------------------------------------

: >"$TMP/hold"
ip netns exec $A "$STUCK" -d $DEV_A -i $IP_A uffd hold >"$TMP/hold" 2>&1 &
holder=$!
if wait_for 20 grep -q '^stuck' "$TMP/hold"; then
	read -r _ server _ < <(grep '^stuck' "$TMP/hold")
	start=$SECONDS
	unloads
	status=$?
	[ $status -eq 1 ] && driver_loaded
	result $? "stuck page: the module is in use, which is said at once (status $status, $((SECONDS - start)) s)"
	kill -9 $holder
	wait_for 5 ended $holder
	wait_for 10 unloads
	result $? "stuck page: the module goes with the process, though nobody has answered"
	kill -9 "$server"
	devices_up 9000
else
	ktap_skip "stuck page" "$(tail -n 1 "$TMP/hold")"
fi

pair "afterwards" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"
hosts_down
unloads
result $? "the module goes"
ktap_end
