# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2004,SC2154 # network, an associative array, seconds and round are guest's
# What an ordinary switch makes of it: four senders, a switch, and a receiver behind a port of 1 Gbit/s, in six network
# namespaces of a driver. Sourced by guest, never run.
#
# The port cuts trains, so that packets are lost and marked one by one:
#	drop	queue of 150 kB, what does not fit is lost
#	ecn	what waits for more than 240 us (30 kB) is marked, and hardly anything is lost
#	late	no limit of the rate, but one packet in a hundred overtakes the others by a millisecond
#	free	no limit at all, packets one by one all the same
# sroce is measured as it is by default, with plain go-back-N (sroce-gbn), and with senders whose packets may be marked
# from the first one on (sroce-cc). Beside streams of its own, in the queues "drop" and "ecn": one stream beside one of
# TCP from another host (cubic in the first, dctcp in the second), as parts of the fair share of each; and streams that
# join one after the other and leave again, of which the least share of a fair one from 200 ms on is told.

network_ports="r s1 s2 s3 s4"
# Connections there are, spread over the senders
network_many="1 4 16"

# network_ns DRIVER MTU WHO ; network_device DRIVER MTU WHO
network_ns() { echo "net-$1-$2-$3"; }
network_device() { echo "n${1}_${2}_$3"; }

# network_make DRIVER MTU NET : address 10.NET.1.N, 1 for the receiver
network_make() {
	local driver=$1 mtu=$2 net=$3 who ns n=0 sw
	sw=$(network_ns "$driver" "$mtu" sw)
	ip netns add "$sw" && ip -n "$sw" link add br0 mtu "$mtu" type bridge && ip -n "$sw" link set br0 up || return
	for who in $network_ports; do
		n=$((n + 1))
		ns=$(network_ns "$driver" "$mtu" "$who")
		ip netns add "$ns" && ip link add eth0 netns "$ns" mtu "$mtu" type veth peer name "$who" netns "$sw" mtu "$mtu" || return
		ip -n "$sw" link set "$who" master br0 && ip -n "$sw" link set "$who" up || return
		ip netns exec "$ns" sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1 net.ipv4.tcp_ecn=1
		ip -n "$ns" link set lo up
		ip -n "$ns" addr add "10.$net.1.$n/24" dev eth0
		ip -n "$ns" link set eth0 up
		[ "$driver" = tcp ] || lab_link "$driver" "$(network_device "$driver" "$mtu" "$who")" eth0 "$ns" || return
	done
	network[net-$driver-$mtu]=$net
}

network_setup() {
	local driver mtu net=100
	modprobe -a bridge sch_tbf sch_codel sch_netem 2>/dev/null
	sysctl -qw net.core.netdev_max_backlog=100000
	for driver in sroce rxe tcp; do
		for mtu in 1500 9000; do
			network_make "$driver" "$mtu" $net || return
			net=$((net + 1))
		done
	done
}

# network_port DRIVER MTU KIND : what the switch does on its way to the receiver
network_port() {
	local sw
	sw=$(network_ns "$1" "$2" sw)
	tc -n "$sw" qdisc del dev r root 2>/dev/null
	case $3 in
	drop) tc -n "$sw" qdisc add dev r root handle 1: tbf rate 1gbit burst 20k limit 150k ;;
	ecn)
		tc -n "$sw" qdisc add dev r root handle 1: tbf rate 1gbit burst 20k limit 2m &&
			tc -n "$sw" qdisc add dev r parent 1:1 codel limit 2000 target 1s interval 10s ce_threshold 240us ecn
		;;
	late)
		tc -n "$sw" qdisc add dev r root handle 1: tbf rate 100gbit burst 10k limit 100m &&
			tc -n "$sw" qdisc add dev r parent 1:1 netem limit 100000 delay 1ms reorder 1%
		;;
	free) tc -n "$sw" qdisc add dev r root handle 1: tbf rate 100gbit burst 10k limit 100m ;;
	esac
}

# network_counts DRIVER MTU : packets that the senders have sent, and how many of them again
network_counts() {
	local who sent=0 again=0 ns
	for who in s1 s2 s3 s4; do
		ns=$(network_ns "$1" "$2" $who)
		case $1 in
		tcp)
			sent=$((sent + $(ip netns exec "$ns" nstat -az TcpOutSegs | awk '/TcpOutSegs/ { print $2 }')))
			again=$((again + $(ip netns exec "$ns" nstat -az TcpRetransSegs | awk '/TcpRetransSegs/ { print $2 }')))
			;;
		sroce)
			sent=$((sent + $(network_counter "$1" "$2" $who rdma_tx_packets)))
			again=$((again + $(network_counter "$1" "$2" $who retrans_packets)))
			;;
		esac
	done
	echo "$sent $again"
}
network_counter() {
	cat "/sys/class/infiniband/$(network_device "$1" "$2" "$3")/ports/1/hw_counters/$4" || echo 0
}

# network_set MTU FILE VALUE : a setting of all of sroce's devices there
network_set() {
	local who
	for who in $network_ports; do
		echo "$3" >"/sys/class/infiniband/$(network_device sroce "$1" "$who")/ports/1/$2" || return
	done
}

# network_address DRIVER MTU WHO
network_address() {
	local n=0 who
	for who in $network_ports; do
		n=$((n + 1))
		[ "$who" != "$3" ] || echo "10.${network[net-$1-$2]}.1.$n"
	done
}

# network_ends DRIVER MTU : the devices with their addresses, the receiver's first
network_ends() {
	local who
	for who in $network_ports; do echo "$(network_device "$1" "$2" "$who") $(network_address "$1" "$2" "$who")"; done
}

# network_streams DRIVER MTU CONNECTIONS : "rate NUMBER MB/s" of each connection that has not died, in /tmp/net
network_streams() {
	local driver=$1 mtu=$2 n=$3 i
	if [ "$driver" != tcp ]; then
		# shellcheck disable=SC2046 # pairs of words
		timeout 60 /tmp/streams -p -n 0 "$seconds" $(network_ends "$driver" "$mtu") >/tmp/net.ping 2>/dev/null &
		# shellcheck disable=SC2046
		timeout 60 /tmp/streams -n "$n" "$seconds" $(network_ends "$driver" "$mtu") >/tmp/net 2>/tmp/client.log
		wait
		return
	fi
	for ((i = 1; i <= n; i++)); do
		ip netns exec "$(network_ns tcp "$mtu" r)" timeout 60 iperf3 -s -1 -p $((5200 + i)) >/dev/null 2>&1 &
	done
	network_listening "$(network_ns tcp "$mtu" r)" "$n"
	for ((i = 1; i <= n; i++)); do
		ip netns exec "$(network_ns tcp "$mtu" s$(((i - 1) % 4 + 1)))" timeout 60 iperf3 -c "$(network_address tcp "$mtu" r)" \
			-p $((5200 + i)) -t "$seconds" -l 64K -f k >"/tmp/net.$i" 2>&1 &
	done
	wait
	for ((i = 1; i <= n; i++)); do
		awk -v i=$i '/receiver/ { for (k = 1; k < NF; k++) if ($(k + 1) == "Kbits/sec") print "rate", i, $k / 8000 }' "/tmp/net.$i"
	done >/tmp/net
}

# network_listening NAMESPACE CONNECTIONS : wait for so many servers
network_listening() {
	local tries ns=$1
	for ((tries = 0; tries < 150; tries++)); do
		[ "$(ip netns exec "$ns" ss -Hltn | grep -c ':52[0-9]*')" -lt "$2" ] || return 0
		sleep 0.1
	done
}

# network_case DRIVER NAME MTU KIND CONNECTIONS : NAME is what the results are called
network_case() {
	local driver=$1 name=$2 mtu=$3 kind=$4 n=$5 load before after rates v us
	load=net$mtu-$kind-$n
	network_port "$driver" "$mtu" "$kind" || { lost "$load $name: no queueing discipline"; return; }
	before=$(network_counts "$driver" "$mtu")
	rm -f /tmp/net.* /tmp/net
	network_streams "$driver" "$mtu" "$n"
	[ ! -e /tmp/net.ping ] || while read -r v us; do
		note "$load" 64 "$name" "$round" "us-p$v" "$us"
	done < <(awk '$1 == "ping" { print $2, $3 }' /tmp/net.ping)
	after=$(network_counts "$driver" "$mtu")
	rates=$(awk '$1 == "rate" { print $3 }' /tmp/net)
	[ -n "$rates" ] || lost "$load $name"
	# A connection that has died has no rate
	note "$load" 65536 "$name" "$round" died $((n - $(grep -c . <<<"$rates")))
	# shellcheck disable=SC2086 # numbers
	awk -v n="$n" '{ sum += $1; squares += $1 * $1 } END { if (sum > 0) print sum, sum * sum / (n * squares) }' <<<"$rates" |
		while read -r sum jain; do
			note "$load" 65536 "$name" "$round" MB/s "$sum"
			[ "$n" -eq 1 ] || note "$load" 65536 "$name" "$round" Jain "$jain"
		done
	# shellcheck disable=SC2086 # four numbers
	set -- $before $after
	[ "$driver" = rxe ] || [ $(($3 - $1)) -eq 0 ] ||
		note "$load" 65536 "$name" "$round" resent-% "$(awk "BEGIN { print 100 * ($4 - $2) / ($3 - $1) }")"
}

# network_least : the least part of a fair share that anybody has in any group, of lines with group and rate
network_least() { awk '{ n[$1]++; sum[$1] += $2; if (!($1 in least) || $2 < least[$1]) least[$1] = $2 }
	END { all = 9; for (i in n) { share = sum[i] ? least[i] * n[i] / sum[i] : 0; if (share < all) all = share } print all }'; }

# network_joins DRIVER NAME MTU KIND
network_joins() {
	local driver=$1 name=$2 mtu=$3 kind=$4 load=net$3-joins-$4
	network_port "$driver" "$mtu" "$kind" || { lost "$load $name: no queueing discipline"; return; }
	# shellcheck disable=SC2046
	timeout 60 /tmp/streams -n 4 -j 1 $(network_ends "$driver" "$mtu") >/tmp/net 2>/tmp/client.log || { lost "$load $name"; return; }
	note "$load" 65536 "$name" "$round" least-share "$(awk '$1 == "phase" { print $2, $4 }' /tmp/net | network_least)"
}

# network_beside DRIVER NAME MTU KIND : beside TCP
network_beside() {
	local driver=$1 name=$2 mtu=$3 kind=$4 cc=cubic load r s rdma tcp
	[ "$kind" = drop ] || cc=dctcp
	load=net$mtu-beside-$cc
	network_port "$driver" "$mtu" "$kind" || { lost "$load $name: no queueing discipline"; return; }
	r=$(network_ns "$driver" "$mtu" r) s=$(network_ns "$driver" "$mtu" s2)
	modprobe -q tcp_$cc
	ip netns exec "$r" timeout 60 iperf3 -s -1 -p 5201 >/dev/null 2>&1 &
	network_listening "$r" 1
	ip netns exec "$s" timeout 60 iperf3 -c "$(network_address "$driver" "$mtu" r)" -p 5201 -t "$seconds" -C $cc -l 64K -f k \
		>/tmp/net.tcp 2>&1 &
	# shellcheck disable=SC2046
	timeout 60 /tmp/streams "$seconds" $(network_ends "$driver" "$mtu" | head -n 2) >/tmp/net 2>/tmp/client.log
	wait
	rdma=$(awk '$1 == "rate" { print $3 }' /tmp/net)
	tcp=$(awk '/receiver/ { for (k = 1; k < NF; k++) if ($(k + 1) == "Kbits/sec") print $k / 8000 }' /tmp/net.tcp)
	[ -n "$rdma" ] && [ -n "$tcp" ] || { lost "$load $name"; return; }
	note "$load" 65536 "$name" "$round" MB/s "$(awk "BEGIN { print $rdma + $tcp }")"
	note "$load" 65536 "$name" "$round" share "$(awk "BEGIN { print 2 * $rdma / ($rdma + $tcp) }")"
	note "$load" 65536 "$name" "$round" share-of-tcp "$(awk "BEGIN { print 2 * $tcp / ($rdma + $tcp) }")"
}

# measure_network DRIVER NAME
measure_network() {
	local driver=$1 name=${2:-$1} mtu kind n
	for mtu in 1500 9000; do
		for kind in drop ecn; do
			for n in $network_many; do network_case "$driver" "$name" $mtu $kind "$n"; done
			[ "$driver" = tcp ] || network_joins "$driver" "$name" $mtu $kind
			[ "$driver" = tcp ] || network_beside "$driver" "$name" $mtu $kind
		done
		for kind in late free; do network_case "$driver" "$name" $mtu $kind 1; done
	done
	[ "$driver-$name" = sroce-sroce ] || return 0
	for mtu in 1500 9000; do network_set $mtu cc_params/rp_enable 1; done
	measure_network sroce sroce-cc
	for mtu in 1500 9000; do
		network_set $mtu cc_params/rp_enable 0 && network_set $mtu roce_accl/selective_repeat_en 0 &&
			network_set $mtu roce_accl/adp_retrans_en 0
	done
	measure_network sroce sroce-gbn
	for mtu in 1500 9000; do
		network_set $mtu cc_params/rp_enable 2 && network_set $mtu roce_accl/selective_repeat_en 1 &&
			network_set $mtu roce_accl/adp_retrans_en 1
	done
}
