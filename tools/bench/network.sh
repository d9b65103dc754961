# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2004,SC2154 # network, an associative array, seconds, round and window are guest's
# What an ordinary switch makes of it: four senders, a switch, and a receiver behind a port of 1 Gbit/s, in six network
# namespaces of a driver. Sourced by guest, never run.
#
# The port cuts trains, so that packets are lost, marked and delayed one by one, if nothing else is said:
#	drop	1 Gbit/s, a queue of 150 kB, what does not fit is lost
#	ecn	1 Gbit/s, what waits for more than 240 us (30 kB) is marked, and hardly anything is lost
#	near	no limit of the rate, 0.1 ms; lossy: and one packet in a hundred is lost
#	buffers	no limit, 0.1 ms, and nothing is cut; spilled: one buffer in a hundred is lost, whatever it holds
#	far	no limit, 10 ms; far001, far01, far1: and one packet in ten thousand, a thousand, or a hundred is lost
#	farslow	1 Gbit/s, a queue of 150 kB, and the way back takes 10 ms
#	even1	no limit, 1 ms; late1: one packet in a hundred overtakes the others by that
#	even5	no limit, 5 ms; late5: five packets in a hundred overtake the others by that
# sroce is measured as it is by default, with plain go-back-N (sroce-gbn), and with senders whose packets may be marked
# from the first one on (sroce-cc). Beside streams of its own, in the queues "drop" and "ecn": one stream beside one of
# TCP from another host (cubic in the first, dctcp in the second), as parts of the fair share that each has of the link;
# streams that join one after the other and leave again, of which the least and the greatest share of a fair one from 200 ms on
# are told; and how long small messages of another queue pair take, with nothing beside them and with the streams.
#
# What there is for the payload of a link of 1 Gbit/s is its row "link".

network_ports="r s1 s2 s3 s4"
# Connections there are, spread over the senders
network_many="1 4 16"
network_pids=()

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
	modprobe -a bridge sch_tbf sch_codel sch_netem tcp_dctcp 2>/dev/null
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
	local sw port cut="root handle 1: tbf rate 100gbit burst 10k limit 100m" netem="netem limit 100000 delay"
	sw=$(network_ns "$1" "$2" sw)
	for port in $network_ports; do tc -n "$sw" qdisc del dev "$port" root 2>/dev/null; done
	case $3 in
	drop) network_qdiscs "$sw" "root handle 1: tbf rate 1gbit burst 20k limit 150k" ;;
	ecn)
		network_qdiscs "$sw" "root handle 1: tbf rate 1gbit burst 20k limit 2m" \
			"parent 1:1 codel limit 2000 target 1s interval 10s ce_threshold 240us ecn"
		;;
	near) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 100us" ;;
	lossy) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 100us loss 1%" ;;
	buffers) network_qdiscs "$sw" "root handle 1: $netem 100us" ;;
	spilled) network_qdiscs "$sw" "root handle 1: $netem 100us loss 1%" ;;
	even1) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 1ms" ;;
	late1) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 1ms reorder 1%" ;;
	far) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 10ms" ;;
	far001) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 10ms loss 0.01%" ;;
	far01) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 10ms loss 0.1%" ;;
	far1) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 10ms loss 1%" ;;
	farslow)
		network_qdiscs "$sw" "root handle 1: tbf rate 1gbit burst 20k limit 150k" || return
		# shellcheck disable=SC2086 # words
		for port in s1 s2 s3 s4; do tc -n "$sw" qdisc add dev $port root $netem 10ms || return; done
		;;
	even5) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 5ms" ;;
	late5) network_qdiscs "$sw" "$cut" "parent 1:1 $netem 5ms reorder 5%" ;;
	*) return 1 ;;
	esac
}
# network_qdiscs NAMESPACE DISCIPLINE... : words of tc
network_qdiscs() {
	local sw=$1 what
	shift
	# shellcheck disable=SC2086 # words
	for what; do tc -n "$sw" qdisc add dev r $what || return; done
}

# network_as NAME MTU : the settings that NAME stands for
network_as() {
	local mtu=$2 cc=2 repair=1
	case $1 in
	sroce-cc) cc=1 ;;
	sroce-gbn) cc=0 repair=0 ;;
	sroce) ;;
	*) return 0 ;;
	esac
	network_set "$mtu" cc_params/rp_enable $cc && network_set "$mtu" roce_accl/selective_repeat_en $repair &&
		network_set "$mtu" roce_accl/adp_retrans_en $repair
}

# network_link MTU [tcp] : MB/s that 1 Gbit/s has for messages of 64 KiB, without the headers of all packets (Ethernet, IP, UDP,
# BTH and ICRC, and once RETH; or Ethernet, IP and TCP with its timestamps)
network_link() {
	awk -v mtu="$1" -v tcp="${2:-}" 'BEGIN {
		payload = mtu >= 4200 ? 4096 : 1024
		print tcp ? 125 * (mtu - 52) / (mtu + 14) : 125 * 65536 / (65536 + 65536 / payload * 58 + 16) }'
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

# network_streams DRIVER MTU CONNECTIONS : in /tmp/net "rate NUMBER MB/s" of each connection that has not died, "second SECOND
# NUMBER MB/s", and "window FROM-TO"; in /tmp/net.ping how long small messages take beside them
network_streams() {
	local driver=$1 mtu=$2 n=$3
	if [ "$driver" = tcp ]; then
		network_sockets "$mtu" "$n"
		return
	fi
	# shellcheck disable=SC2046 # pairs of words
	timeout 60 /tmp/streams -p -n 0 "$seconds" $(network_ends "$driver" "$mtu") >/tmp/net.ping 2>/tmp/client.log &
	# shellcheck disable=SC2046,SC2086 # an option or none
	[ "$n" -eq 0 ] || timeout 60 /tmp/streams ${reads:-} -n "$n" "$seconds" $(network_ends "$driver" "$mtu") >/tmp/net 2>/tmp/client.log
	wait $!
}

# Streams of TCP are looked at while all of them are there, at the receiver, which tells all the time what it has (tcp.c).
# network_tcp DRIVER MTU SENDER NUMBER CONGESTION : one, that ends when network_tcp_end is called
network_tcp() {
	local driver=$1 mtu=$2 who=$3 n=$4 cc=$5 port=$((5200 + $4))
	ip netns exec "$(network_ns "$driver" "$mtu" r)" timeout 60 /tmp/tcp -t -c "$cc" $port >"/tmp/net.at.$n" 2>/dev/null &
	network_pids+=($!)
	listening "$(network_ns "$driver" "$mtu" r)" $port
	ip netns exec "$(network_ns "$driver" "$mtu" "$who")" timeout 60 /tmp/tcp -c "$cc" $port "$(network_address "$driver" "$mtu" r)" \
		50 65536 >/dev/null 2>/tmp/client.log &
	network_pids+=($!)
}
# network_tcp_begun CONNECTIONS : wait until something has arrived of each
network_tcp_begun() {
	local i tries
	for ((i = 1; i <= $1; i++)); do
		for ((tries = 0; tries < 50; tries++)); do
			[ ! -s "/tmp/net.at.$i" ] || break
			sleep 0.1
		done
	done
}
network_tcp_end() {
	kill "${network_pids[@]}" 2>/dev/null
	wait "${network_pids[@]}" 2>/dev/null
	network_pids=()
}
# network_tcp_rates CONNECTIONS FROM TO : of that time "rate NUMBER MB/s" of each stream that was there
network_tcp_rates() {
	local i
	for ((i = 1; i <= $1; i++)); do
		awk -v i=$i -v from="$2" -v to="$3" '
			$1 == "at" && $2 <= from { before = $3; any = 1 }
			$1 == "at" && $2 <= to { after = $3 }
			END { if (any) print "rate", i - 1, (after - before) / (to - from) / 1e6 }' "/tmp/net.at.$i"
	done
}

# network_sockets MTU CONNECTIONS : as network_streams
network_sockets() {
	local mtu=$1 n=$2 i from to
	for ((i = 1; i <= n; i++)); do network_tcp tcp "$mtu" s$(((i - 1) % 4 + 1)) $i cubic; done
	network_tcp_begun "$n"
	from=$EPOCHREALTIME
	sleep "$seconds"
	to=$EPOCHREALTIME
	network_tcp_end
	{
		network_tcp_rates "$n" "$from" "$to"
		echo "window $from-$to"
	} >/tmp/net
}

# network_fair CONNECTIONS : Jain's index of the least fair second, of lines "second SECOND NUMBER MB/s", but the first where there
# are others; where nobody tells seconds, of all the time
network_fair() {
	awk -v n="$1" '
		$1 == "second" { s = $2; rate = $4 }
		$1 == "rate" { s = -1; rate = $3 }
		$1 == "second" || $1 == "rate" { sum[s] += rate; squares[s] += rate * rate; if (s > last) last = s }
		END {
			least = 2
			for (s = last ? (last > 0) : 0; s <= last; s++) {
				jain = squares[s] ? sum[s] * sum[s] / (n * squares[s]) : 0
				if (jain < least) least = jain
			}
			if (least > 1) least = squares[-1] ? sum[-1] * sum[-1] / (n * squares[-1]) : 0
			print least
		}' last=-1 /tmp/net
}

# network_used LOAD SIZE NAME : when it was under way, of /tmp/net
network_used() {
	local when
	when=$(awk '$1 == "window" { print $2 }' /tmp/net)
	[ -z "$when" ] || note "$1" "$2" "$3" "$round" window "$when"
}

# network_pings LOAD NAME : of /tmp/net.ping
network_pings() {
	local part us
	while read -r part us; do
		note "$1" 64 "$2" "$round" "us-p$part" "$us"
		[ "$part" != 50 ] || note "$1" 64 "$2" "$round" us "$us"
	done < <(awk '$1 == "ping" { print $2, $3 }' /tmp/net.ping 2>/dev/null)
}

# network_case NAME MTU KIND CONNECTIONS : NAME is what the results are called. "r" before the number: of READs
network_case() {
	local name=$1 mtu=$2 kind=$3 n=${4#r} driver=${1%%-*} load before after rates watcher reads=''
	load=net$mtu-$kind-$4
	[ "$4" = "$n" ] || reads=-r
	network_as "$name" "$mtu" && network_port "$driver" "$mtu" "$kind" || { lost "$load $name: no such port"; return; }
	before=$(network_counts "$driver" "$mtu")
	rm -f /tmp/net.* /tmp/net
	touch /tmp/net
	ip netns exec "$(network_ns "$driver" "$mtu" sw)" /tmp/backlog r >/tmp/net.queue 2>/dev/null &
	watcher=$!
	network_streams "$driver" "$mtu" "$n"
	kill $watcher && wait $watcher
	network_pings "$load" "$name"
	[ "$n" -gt 0 ] || { grep -q ^ping /tmp/net.ping || lost "$load $name"; return; }
	after=$(network_counts "$driver" "$mtu")
	rates=$(awk '$1 == "rate" { print $3 }' /tmp/net)
	[ -n "$rates" ] || lost "$load $name"
	# A connection that has died has no rate
	note "$load" 65536 "$name" "$round" died $((n - $(grep -c . <<<"$rates")))
	note "$load" 65536 "$name" "$round" MB/s "$(awk '{ sum += $1 } END { print sum + 0 }' <<<"$rates")"
	[ "$n" -eq 1 ] || note "$load" 65536 "$name" "$round" Jain "$(network_fair "$n")"
	network_used "$load" 65536 "$name"
	case $kind in drop | ecn | farslow)
		awk '$1 == "queue" { print $2, $3 }' /tmp/net.queue | while read -r part kb; do
			note "$load" 65536 "$name" "$round" "queue-kB-p$part" "$kb"
		done
		;;
	esac
	# shellcheck disable=SC2086 # four numbers
	set -- $before $after
	[ "$driver" = rxe ] || [ $(($3 - $1)) -eq 0 ] ||
		note "$load" 65536 "$name" "$round" resent-% "$(awk "BEGIN { print 100 * ($4 - $2) / ($3 - $1) }")"
}

# network_shares : the least and the greatest part of a fair share that anybody has in any group, of lines with group and rate
network_shares() {
	awk '{ n[$1]++; sum[$1] += $2; if (!($1 in least) || $2 < least[$1]) least[$1] = $2; if ($2 > most[$1]) most[$1] = $2 }
		END {
			low = 9; high = 0
			for (i in n) {
				share = sum[i] ? n[i] / sum[i] : 0
				if (least[i] * share < low) low = least[i] * share
				if (most[i] * share > high) high = most[i] * share
			}
			print low, high
		}'
}

# network_joins NAME MTU KIND
network_joins() {
	local name=$1 mtu=$2 kind=$3 driver=${1%%-*} load=net$2-joins-$3 least most
	network_as "$name" "$mtu" && network_port "$driver" "$mtu" "$kind" || { lost "$load $name: no such port"; return; }
	# shellcheck disable=SC2046
	timeout 60 /tmp/streams -n 4 -j 1 $(network_ends "$driver" "$mtu") >/tmp/net 2>/tmp/client.log || { lost "$load $name"; return; }
	read -r least most < <(awk '$1 == "phase" { print $2, $4 }' /tmp/net | network_shares)
	note "$load" 65536 "$name" "$round" least-share "$least"
	note "$load" 65536 "$name" "$round" greatest-share "$most"
	network_used "$load" 65536 "$name"
}

# network_beside NAME MTU KIND : beside TCP
network_beside() {
	local name=$1 mtu=$2 kind=$3 driver=${1%%-*} cc=cubic load streams from rdma tcp
	[ "$kind" = drop ] || cc=dctcp
	load=net$mtu-beside-$cc
	network_as "$name" "$mtu" && network_port "$driver" "$mtu" "$kind" || { lost "$load $name: no such port"; return; }
	rm -f /tmp/net /tmp/net.*
	touch /tmp/net
	network_tcp "$driver" "$mtu" s2 1 $cc
	network_tcp_begun 1
	# shellcheck disable=SC2046
	timeout 60 /tmp/streams "$seconds" $(network_ends "$driver" "$mtu" | head -n 2) >/tmp/net 2>/tmp/client.log &
	streams=$!
	until grep -q started /tmp/net || ! kill -0 $streams 2>/dev/null; do sleep 0.02; done
	from=$EPOCHREALTIME
	wait $streams
	network_tcp_end
	rdma=$(awk '$1 == "rate" { print $3 }' /tmp/net)
	tcp=$(network_tcp_rates 1 "$from" "$(awk "BEGIN { printf \"%.6f\", $from + $seconds }")" | awk '{ print $3 }')
	[ -n "$rdma" ] && [ -n "$tcp" ] || { lost "$load $name"; return; }
	note "$load" 65536 "$name" "$round" MB/s "$(awk "BEGIN { print $rdma + $tcp }")"
	note "$load" 65536 "$name" "$round" share "$(awk "BEGIN { print 2 * $rdma / $(network_link "$mtu") }")"
	note "$load" 65536 "$name" "$round" share-of-tcp "$(awk "BEGIN { print 2 * $tcp / $(network_link "$mtu" tcp) }")"
	network_used "$load" 65536 "$name"
}

# Each thing for all contenders one after the other
measure_network() {
	local mtu kind n
	for mtu in 1500 9000; do
		for n in $network_many; do
			note "net$mtu-drop-$n" 65536 link "$round" MB/s "$(network_link $mtu)"
			each "sroce sroce-gbn rxe tcp" network_case $mtu drop "$n"
		done
		each "sroce rxe" network_case $mtu ecn 0
		for n in $network_many; do
			note "net$mtu-ecn-$n" 65536 link "$round" MB/s "$(network_link $mtu)"
			each "sroce sroce-cc rxe tcp" network_case $mtu ecn "$n"
		done
		each "sroce rxe" network_joins $mtu drop
		each "sroce sroce-cc" network_joins $mtu ecn
		each "sroce rxe" network_beside $mtu drop
		each "sroce sroce-cc" network_beside $mtu ecn
		for kind in near lossy buffers spilled even1 late1 even5 late5; do
			each "sroce sroce-gbn rxe tcp" network_case $mtu $kind 1
		done
		network_as sroce $mtu
	done
}
