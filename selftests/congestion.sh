#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Packets that a queue of the network has marked (ECN): each is counted, and its sender is told, no more often than is
# set, by packets of their own class (CNP), whatever the transport; what an application wants in the ECN bits does not
# reach the wire. tc marks, as a switch would, and counts what passes.
. "$(dirname "$0")/lib.sh"
. "$SELF/stock.sh"

command -v ib_write_bw >/dev/null || bail "perftest is not installed"
# shellcheck disable=SC2034 # for stock.sh
SERVER_DEV=$DEV_A CLIENT_NS=$B CLIENT_DEV=$DEV_B SERVER_IP=$IP_A CLIENT_IP=$IP_B
amount n 100 1000

# --- settings ---------------------------------------------------------------------------------------------

# The files are where the RDMA device is, not its netdev: namespaces that share it have less of it
param_file() { echo "/sys/class/infiniband/$1/ports/1/cc_params/$2"; }
param() { cat "$(param_file "$1" "$2")"; }
# Both devices
set_param() { echo "$2" >"$(param_file $DEV_A "$1")" && echo "$2" >"$(param_file $DEV_B "$1")"; }
refuses() { ! echo "$2" 2>/dev/null >"$(param_file $DEV_A "$1")"; }

# a_setting NAME DEFAULT MOST
a_setting() {
	local value
	value=$(param $DEV_A "$1")
	[ "$value" = "$2" ]
	result $? "$1 is $2 ($value)"
	set_param "$1" "$3" && [ "$(param $DEV_A "$1")" = "$3" ] && set_param "$1" "$2"
	result $? "$1 may be $3"
	for value in $(($3 + 1)) -1 many; do
		refuses "$1" "$value" && [ "$(param $DEV_A "$1")" = "$2" ]
		result $? "$1 must not be $value"
	done
}

# --- what the network does ----------------------------------------------------------------------------------

# mark NAMESPACE NETDEV : all that leaves there has met congestion
mark() {
	tc -n "$1" qdisc replace dev "$2" clsact &&
		tc -n "$1" filter add dev "$2" egress pref 1 protocol ip matchall action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h &&
		tc -n "$1" filter add dev "$2" egress pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 3 retain 3 ||
		bail "tc cannot mark packets"
}
unmark() { tc -n "$1" filter del dev "$2" egress; }

# watch NAMESPACE PREF MATCH... : count what arrives at veth0 and matches; passed NAMESPACE PREF : how many packets
watch() {
	tc -n "$1" qdisc replace dev veth0 clsact && tc -n "$1" filter add dev veth0 ingress pref "$2" "${@:3}" action ok ||
		bail "tc cannot count packets"
}
passed() { tc -n "$1" -s filter show dev veth0 ingress pref "$2" | awk '/Sent/ { n += $4 } END { print n + 0 }'; }

# A DSCP of notifications, as tc matches it, over both kinds of IP
watch_cnps() {
	local ns
	for ns in $A $B; do
		tc -n "$ns" filter del dev veth0 ingress 2>/dev/null
		watch "$ns" 10 protocol ip flower ip_proto udp dst_port 4791 ip_tos "$1/0xff"
		watch "$ns" 11 protocol ipv6 flower ip_proto udp dst_port 4791 ip_tos "$1/0xff"
	done
}
cnps_seen() { echo $(($(passed "$1" 10) + $(passed "$1" 11))); }

# --- who is told --------------------------------------------------------------------------------------------

us() { date +%s%6N; }

# what has happened so far to the one who tells, a namespace and a device, and the one who is told
status() {
	echo "$(counter "$1" "$2" np_ecn_marked_roce_packets) $(counter "$1" "$2" rdma_rx_packets)" \
		"$(counter "$1" "$2" np_cnp_sent) $(cnps_seen "$3") $(counter "$3" "$4" rp_cnp_ignored) $(us)"
}

# told SENDER TOOL [OPTIONS] : packets from the client ($B) or the server ($A) are marked, and the other one tells.
# QPS is how many queue pairs there are; LATE=1: the last notifications may come when the sender has gone.
told() {
	local sender=$1 dev=$DEV_A teller=$B tdev=$DEV_B before after marked packets most bad=0
	[ "$sender" = $A ] || dev=$DEV_B teller=$A tdev=$DEV_A
	shift
	mark "$sender" "${NETDEV:-veth0}"
	before=$(status $teller $tdev "$sender" $dev)
	perftest "$@"
	after=$(status $teller $tdev "$sender" $dev)
	unmark "$sender" "${NETDEV:-veth0}"
	# shellcheck disable=SC2086 # twelve numbers
	set -- $before $after
	marked=$(($7 - $1)) packets=$(($8 - $2)) cnps=$(($9 - $3)) seen=$((${10} - $4)) ignored=$((${11} - $5))
	most=$((${QPS:-1} * ((${12} - $6) / ($(param $tdev np_min_time_between_cnps) + 1) + 2)))
	note "$packets packets, $marked marked, $cnps notifications sent, $seen seen, $ignored received, $most allowed"
	[ $marked -eq $packets ] && [ $marked -gt 0 ] || bad=1
	[ $cnps -eq $seen ] && [ $cnps -le $most ] || bad=1
	if [ -n "${SILENT:-}" ]; then
		[ $cnps -eq 0 ] || bad=1
	else
		[ $cnps -gt 0 ] || bad=1
		[ $ignored -eq $cnps ] || { [ -n "${LATE:-}" ] && [ $ignored -gt 0 ] && [ $ignored -lt $cnps ]; } || bad=1
	fi
	[ $bad -eq 0 ]
	result $? "$WHERE: ${SILENT:+not }told of marked packets"
}

transports() {
	WHERE=$1
	stock_gids
	told $B ib_write_bw -s 65536 -n "$n"
	QPS=4 told $B ib_send_bw -q 4 -s 4096 -n $((4 * n))
	told $A ib_read_bw -s 65536 -n "$n"
	LATE=1 told $B ib_send_bw -c UC -s 65536 -n "$n"
	LATE=1 told $B ib_send_bw -c UD -s 1024 -n $((4 * n))
	if has_xrc; then QPS=2 told $B ib_send_bw -c XRC -s 65536 -n "$n"; fi
}

devices_up 1500
a_setting np_enable 1 1
a_setting np_cnp_dscp 48 63
a_setting np_cnp_prio 6 7
a_setting np_min_time_between_cnps 50 1000000
a_setting rp_enable 2 2
a_setting rp_initial_alpha_value 1023 1023
a_setting rp_dce_tcp_g 1019 1023
a_setting rp_dce_tcp_rtt 55 1000000
a_setting rp_rate_reduce_monitor_period 50 1000000
a_setting rp_min_dec_fac 50 100
a_setting rp_time_reset 300 1000000
a_setting rp_threshold 1 31
a_setting rp_ai_rate 5 1000000
a_setting rp_hai_rate 50 1000000
a_setting rp_min_rate 0 1000000
a_setting rp_max_rate 0 1000000
a_setting rp_rate_to_set_on_first_cnp 0 1000000

# Where all packets are marked a rate would fall without end: only those who tell are looked at
set_param rp_enable 0
watch_cnps 0xc0
transports "IPv4"
SERVER_IP=$IP6_A CLIENT_IP=$IP6_B
transports "IPv6"
SERVER_IP=$IP_A CLIENT_IP=$IP_B

WHERE="at most once in 20 ms"
stock_gids
set_param np_min_time_between_cnps 20000
told $B ib_write_bw -s 65536 -n "$n"
seldom=$cnps
WHERE="each time"
set_param np_min_time_between_cnps 0
told $B ib_write_bw -s 65536 -n "$n"
[ $cnps -gt $((2 * seldom)) ]
result $? "more often when that is set ($cnps and $seldom times)"
set_param np_min_time_between_cnps 50
WHERE="off"
set_param np_enable 0
SILENT=1 told $B ib_write_bw -s 65536 -n "$n"
set_param np_enable 1
WHERE="another class"
set_param np_cnp_dscp 40
watch_cnps 0xa0
told $B ib_write_bw -s 65536 -n "$n"
set_param np_cnp_dscp 48

# --- who slows down -----------------------------------------------------------------------------------------

# slow_write : $ms is what 64 MiB have taken
slow_write() {
	local start
	start=$(us)
	perftest ib_write_bw -s 65536 -n 1024
	ms=$((($(us) - start) / 1000))
}

WHERE="slowing down"
stock_gids
for ns in $A $B; do tc -n "$ns" filter del dev veth0 ingress; done
watch $A 10 protocol ip flower ip_proto udp dst_port 4791 ip_tos 2/0x3
set_param rp_enable 1
slow_write
free=$ms ect=$(passed $A 10)
[ "$ect" -gt 0 ]
result $? "$WHERE: packets may be marked ($ect buffers)"
# No slower than 25 MB/s, which is two seconds and a half for 64 MiB, and a little faster before the first notification
set_param rp_min_rate 200
before=$(counter $B $DEV_B rp_cnp_handled) ignored=$(counter $B $DEV_B rp_cnp_ignored)
mark $B veth0
slow_write
unmark $B veth0
handled=$(($(counter $B $DEV_B rp_cnp_handled) - before)) ignored=$(($(counter $B $DEV_B rp_cnp_ignored) - ignored))
[ $handled -gt 0 ] && [ $ignored -eq 0 ]
result $? "$WHERE: $handled notifications handled, $ignored ignored"
[ $((ms - free)) -gt 1500 ]
result $? "$WHERE: 64 MiB in $ms ms, and in $free ms without marks"
set_param rp_min_rate 0
set_param rp_enable 0
for ns in $A $B; do tc -n "$ns" filter del dev veth0 ingress; done
watch $A 10 protocol ip flower ip_proto udp dst_port 4791 ip_tos 2/0x3
slow_write
[ "$(passed $A 10)" -eq 0 ]
result $? "$WHERE: switched off, no packet may be marked (64 MiB in $ms ms)"

# Each kind of queue pair that sends slows down when all of it is marked, to what is set, and tells so itself. Few bytes are under
# way, and the limit is one that every machine is faster than.
floor=50

# states NAMESPACE DEVICE : until somebody says so, what has left, and what a device's queue pairs tell of themselves, a line each
states() {
	while [ ! -e "$TMP/over" ]; do
		echo "sent $(us) $(wire_bytes "$1")"
		in_ns "$1" rdma -dd resource show qp link "$2/1" | tr -s ' \n' ' ' | sed 's/link /\n&/g'
		echo
		sleep 0.2
	done
}
# stated NAME : the number that a line of states has
stated() { grep -o "drv_$1 [0-9]*" <<<"$line" | cut -d' ' -f2; }
# fastest : kbit/s between two looks
fastest() {
	awk '$1 == "sent" { if (t && $2 > t) { rate = ($3 - bytes) * 8000 / ($2 - t); if (rate > most) most = rate }; t = $2; bytes = $3 }
		END { printf "%d\n", most }' "$TMP/states"
}
# steady : kbit/s from the first to the last look that has found a rate
steady() {
	awk '$1 == "sent" { t = $2; bytes = $3; next }
		match($0, /drv_cc_rate_kbps [1-9]/) { if (!first) { first = t; from = bytes }; last = t; to = bytes }
		END { printf "%d\n", (last > first) ? (to - from) * 8000 / (last - first) : 0 }' "$TMP/states"
}
# looked_at NAMESPACE DEVICE TOOL [OPTIONS] : perftest, for some seconds, with its states
looked_at() {
	local watcher
	rm -f "$TMP/over"
	states "$1" "$2" >"$TMP/states" 2>/dev/null &
	watcher=$!
	perftest "${@:3}" -D 3
	touch "$TMP/over"
	wait $watcher
}

# slows NAME SENDER TOOL [OPTIONS] : without marks, and with them
slows() {
	local sender=$2 dev=$DEV_B before ignored line free slow rate target alpha window told bad=1 shown="no rate"
	local WHERE="slowing down, $1"
	[ "$sender" = $B ] || dev=$DEV_A
	shift 2
	looked_at "$sender" $dev "$@"
	free=$(fastest)
	before=$(counter "$sender" $dev rp_cnp_handled) ignored=$(counter "$sender" $dev rp_cnp_ignored)
	mark "$sender" veth0
	looked_at "$sender" $dev "$@"
	unmark "$sender" veth0
	told=$(($(counter "$sender" $dev rp_cnp_handled) - before)) ignored=$(($(counter "$sender" $dev rp_cnp_ignored) - ignored))
	[ $told -gt 0 ] && [ $ignored -eq 0 ]
	result $? "$WHERE: $told notifications handled, $ignored ignored"
	# Ethernet's header is not counted by the limit; a timer that is late is not made up for by more than a millisecond
	slow=$(steady)
	[ "$slow" -ge $((floor * 250)) ] && [ "$slow" -le $((floor * 1500)) ] && [ "$free" -gt $((2 * slow)) ]
	result $? "$WHERE: $slow kbit/s where $floor Mbit/s are left, and up to $free without marks"
	# Each look that has found a rate, and one at least when it was as low as it gets
	while read -r line; do
		rate=$(stated cc_rate_kbps) target=$(stated cc_target_kbps) alpha=$(stated cc_alpha_permille) window=$(stated sq_window)
		[ "${rate:-0}" -gt 0 ] || continue
		shown="rate $rate kbit/s, target $target, alpha $alpha, window $window"
		# datagrams have no window
		[ "$rate" -ge $((floor * 1000)) ] && [ "$target" -ge "$rate" ] && [ "$alpha" -ge 1 ] && [ "$alpha" -le 1000 ] &&
			{ [ "$window" -ge 1 ] || [[ $* == *UD* ]]; } || { bad=1 && break; }
		[ "$rate" -ge $((floor * 1500)) ] || bad=0
	done <"$TMP/states"
	result $bad "$WHERE: and its state says so ($shown)"
}

set_param rp_enable 1
set_param rp_min_rate $floor
few="-s 8192 -t 16"
# shellcheck disable=SC2086 # words
{
	slows "WRITE" $B ib_write_bw $few
	slows "READ responses" $A ib_read_bw $few
	if [ -n "$SHORT" ]; then
		note "UC, UD and XRC: left out"
	else
		slows "UC" $B ib_write_bw -c UC $few
		slows "UD" $B ib_send_bw -c UD -s 1024 -t 64
		! has_xrc || slows "XRC" $B ib_write_bw -c XRC $few
	fi
}
set_param rp_min_rate 0
set_param rp_enable 0

# --- who asks whether marks are told of -----------------------------------------------------------------------

# asked TELLS : what is sent to a peer that tells or not, if rp_enable is as at first. Rules are for what is to arrive
# at host A: buffers that may be marked, and those that are
asked() {
	local may are handled
	for ns in $A $B; do tc -n "$ns" filter del dev veth0 ingress; done
	watch $A 10 protocol ip flower ip_proto udp dst_port 4791 ip_tos 2/0x3
	watch $A 11 protocol ip flower ip_proto udp dst_port 4791 ip_tos 3/0x3
	set_param np_enable "$1"
	handled=$(counter $B $DEV_B rp_cnp_handled)
	slow_write
	may=$(passed $A 10) are=$(passed $A 11) handled=$(($(counter $B $DEV_B rp_cnp_handled) - handled))
	note "$may buffers may be marked, $are are; $handled notifications; 64 MiB in $ms ms"
	[ "$are" -gt 0 ] && [ "$are" -lt 100 ]
	result $? "asking: a few buffers are sent as if they had been marked"
	if [ "$1" = 1 ]; then
		[ "$may" -gt 100 ] && [ $handled -gt 0 ]
		result $? "asking: the peer tells: packets may be marked from then on"
	else
		[ "$may" -eq 0 ] && [ $handled -eq 0 ]
		result $? "asking: the peer is silent: no packet may be marked"
	fi
	[ "$ms" -lt $((2 * free + 1000)) ]
	result $? "asking: it costs no speed"
}
set_param rp_enable 2
asked 1
asked 0
set_param np_enable 1
set_param rp_enable 0

# --- a VLAN's priority ----------------------------------------------------------------------------------------

WHERE="VLAN"
for ns in $A $B; do
	ip -n "$ns" link add t0 link veth0 type vlan id 7 egress-qos-map 0:0 6:5 2>/dev/null && ip -n "$ns" link set t0 up || ns=
	[ -n "$ns" ] || break
done
if [ -n "$ns" ]; then
	ip -n $A addr add 10.97.0.1/24 dev t0
	ip -n $B addr add 10.97.0.2/24 dev t0
	wait_gids $A $DEV_A t0 && wait_gids $B $DEV_B t0
	SERVER_IP=10.97.0.1 CLIENT_IP=10.97.0.2
	stock_gids
	# tc sees the tag, and not what is behind it, where the VLAN is still below it
	for ns in $A $B; do
		tc -n "$ns" filter del dev veth0 ingress
		watch "$ns" 10 protocol 802.1Q flower vlan_prio 5
	done
	NETDEV=t0 told $B ib_write_bw -s 65536 -n "$n"
	NETDEV=t0 LATE=1 told $B ib_send_bw -c UD -s 1024 -n $((4 * n))
	SERVER_IP=$IP_A CLIENT_IP=$IP_B
else
	ktap_skip "$WHERE" "no VLANs in this kernel"
fi

# --- ECN bits of an application ---------------------------------------------------------------------------------

# class_kept NAME PROTOCOL TOOL [OPTIONS] : of traffic class 107, which is DSCP 26 and both ECN bits, the class arrives and the
# bits do not
class_kept() {
	local name=$1 protocol=$2 ns ecn class all=0
	local WHERE="application's class, $1"
	shift 2
	for ns in $A $B; do tc -n "$ns" filter del dev veth0 ingress; done
	watch $A 10 protocol "$protocol" flower ip_proto udp dst_port 4791 ip_tos 0x68/0xff
	for ecn in 1 2 3; do watch $A 1$ecn protocol "$protocol" flower ip_proto udp dst_port 4791 ip_tos $ecn/0x3; done
	perftest "$@" --tclass=107
	class=$(passed $A 10)
	for ecn in 1 2 3; do all=$((all + $(passed $A 1$ecn))); done
	[ "$class" -gt 0 ] && [ $all -eq 0 ]
	result $? "traffic class 107, $name: $class buffers of DSCP 26, $all with ECN bits"
}

# every_class PROTOCOL NAME
every_class() {
	stock_gids
	class_kept "$2" "$1" ib_write_bw -s 65536 -n "$n"
	class_kept "$2, datagrams" "$1" ib_send_bw -c UD -s 1024 -n $((4 * n))
	class_kept "$2, UC" "$1" ib_write_bw -c UC -s 65536 -n "$n"
}
every_class ip "IPv4"
SERVER_IP=$IP6_A CLIENT_IP=$IP6_B
every_class ipv6 "IPv6"
ktap_end
