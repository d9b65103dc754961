#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Every packet between two hosts, seen by somebody in the middle who drops, delays, repeats or marks some: what is said of
# a gap, from where it is sent again, when, and how often a sender is told of congestion, is what the protocol says, and
# the counters are what was seen. Between two sroce devices, and with rdma_rxe at either end.
# shellcheck disable=SC2086 # lists of words, and names without spaces
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) && OBSERVER=$(program observer) || bail "verify or observer was not built"
command -v python3 >/dev/null || bail "no python3"
[ "$DRIVER" = sroce ] || { ktap_skip "all of it" "is about sroce"; ktap_end; }
export PYTHONDONTWRITEBYTECODE=1
M=srtest_m
down() {
	[ -z "${observer:-}" ] || kill "$observer" 2>/dev/null
	finish
	ip netns del "$M" 2>/dev/null
}
trap down EXIT

# --- two hosts and somebody between them ----------------------------------------------------------------------------

# middle_up [DRIVER_A DRIVER_B] : packets are cut, and have their checksums, before they reach the observer
middle_up() {
	local ns n=0
	hosts_down
	ip netns del "$M" 2>/dev/null
	host_ns $A && host_ns $B && host_ns $M || bail "cannot make network namespaces"
	in_ns $M sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6' 2>/dev/null
	for ns in $A $B; do
		n=$((n + 1))
		ip link add veth0 netns $ns mtu 1500 type veth peer name side_$n netns $M mtu 1500 || bail "no veth"
		in_ns $ns sh -c 'echo 0 >/proc/sys/net/ipv6/conf/veth0/accept_dad' 2>/dev/null
		in_ns $ns ethtool -K veth0 gso off tso off tx off >/dev/null || bail "ethtool cannot switch off GSO"
		ip -n $ns addr add 10.98.0.$n/24 dev veth0
		ip -n $ns link set veth0 up && ip -n $M link set side_$n up
	done
	for ns in $A:$DEV_A:${1:-sroce} $B:$DEV_B:${2:-sroce}; do
		IFS=: read -r ns dev type <<<"$ns"
		wait_for 20 limit 20 in_ns $ns rdma link add $dev type $type netdev veth0 2>/dev/null && wait_gids $ns $dev veth0 || return
	done
}

setting() { echo "/sys/class/infiniband/$1/ports/1/$2"; }
# set_both FILE VALUE : on those of the two that are ours
set_both() {
	local dev
	for dev in $DEV_A $DEV_B; do
		[ ! -e "$(setting $dev "$1")" ] || echo "$2" >"$(setting $dev "$1")"
	done
}

# risen HOST : how much each counter has, as words " HOST.NAME=N"
risen() { awk -v host="$1" 'NR == FNR { before[$1] = $2; next } { printf " %s.%s=%d", host, $1, $2 - before[$1] }' "$TMP/$1.before" "$TMP/$1.after"; }

# seen CASE NAME RULES VALUES OPTIONS... : run verify from host B, which is "a" for the observer, to host A, with the rules
# (words) for the observer and what the case wants to know (words), and have looked at what was seen. The messages are
# always the same.
seen() {
	local case=$1 name=$2 rules=() values rule host ns dev
	for rule in $3; do rules+=(-r "$rule"); done
	values=$4
	shift 4
	ip netns exec "$M" "$OBSERVER" -a side_2 -b side_1 "${rules[@]}" >"$TMP/trace" 2>&1 &
	observer=$!
	wait_for 20 grep -q watching "$TMP/trace" || bail "the observer: $(cat "$TMP/trace")"
	for host in a:$B:$DEV_B b:$A:$DEV_A; do
		IFS=: read -r host ns dev <<<"$host"
		counters "$ns" "$dev" >"$TMP/$host.before"
	done
	pair "$name: data" 90 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -1 -q 1 -M 1024 -s 7 $* $IP_A"
	sleep 0.3
	kill $observer
	wait $observer
	observer=
	for host in a:$B:$DEV_B b:$A:$DEV_A; do
		IFS=: read -r host ns dev <<<"$host"
		[[ $judge == *$host* ]] || continue
		counters "$ns" "$dev" >"$TMP/$host.after"
		values+=$(risen "$host")
	done
	# shellcheck disable=SC2086 # words
	program_verdicts "$name" 60 python3 "$SELF/observer_judge.py" "$case" "$TMP/trace" judge=$judge slow=$SLOW timeout_us=$timeout_us $values
}
writes="-o write -n 1 -b 32 -g 1 -m 65536 -T 16"
many_reads="-o read -n 8 -b 32 -g 1 -m 65536 -T 16"
many_writes="-o write -n 8 -b 48 -g 1 -m 65536 -T 16"
mixed="-o send,read,fadd,count -n 2 -b 32 -g 1 -m 16384 -T 16"
reads="-o read -n 1 -b 24 -g 1 -m 65536 -T 16"
timeout_us=$((4096 * 65536 / 1000))

# recovery NAME VALUES : what has to be right whatever the peer does with what comes behind a gap
recovery() {
	local name=$1 values=$2 last
	seen clean "$name: nothing is done" "" "$values" $writes
	grep '^[0-9]* a request ' "$TMP/trace" >"$TMP/requests"
	last=$(wc -l <"$TMP/requests")
	note "$last requests"
	seen gap "$name: a request is lost" "drop:a:request:20" "$values" $writes
	seen gap "$name: three in a row are lost" "drop:a:request:30-32" "$values" $writes
	seen tail "$name: the last request is lost" "drop:a:new:$last" "$values timeout_us=$timeout_us" $writes
	seen nak_lost "$name: a request and its NAK are lost" "drop:a:request:20 drop:b:nak:1" "$values" $writes
	seen twice "$name: a request is lost twice" "drop:a:request:20 drop:a:resent:1" "$values" $writes
	seen repeated "$name: a request comes twice" "repeat:a:request:20" "$values" $writes
	seen late "$name: requests are late" "delay:a:new:20:2 delay:a:new:50:2 delay:a:new:80:2" "$values" $writes
	seen gap "$name: a request is corrupt" "corrupt:a:request:20" "$values" $writes
	seen ack_lost "$name: an ACK is lost" "drop:b:ack:1" "$values" $writes
	seen ack_lost "$name: an ACK is lost among READs and atomics" "drop:b:ack:1" "$values" $mixed
	seen result_lost "$name: the result of an atomic is lost" "drop:b:result:2" "$values" $mixed
	seen response_gap "$name: a response is lost" "drop:b:response:20" "$values" $reads
	seen response_gap "$name: a response is corrupt" "corrupt:b:response:20" "$values" $reads
}

# marks NAME VALUES : each request has met congestion
marks() {
	local interval
	for interval in 50 20000 0; do
		set_both cc_params/np_min_time_between_cnps $interval
		seen marked "$1: one notification in $interval us" mark:a:request:1-1000000 "$2 interval_us=$interval" $many_writes
	done
	set_both cc_params/np_min_time_between_cnps 50
}

# marked_reads NAME VALUES : each response has
marked_reads() {
	set_both cc_params/np_min_time_between_cnps 2000
	seen marked_responses "$1: responses, one notification in 2000 us" mark:b:response:1-1000000 "$2 interval_us=2000" $many_reads
	set_both cc_params/np_min_time_between_cnps 50
}

driver_load
judge=ab
middle_up || bail "no devices"
set_both roce_accl/selective_repeat_en 0
set_both roce_accl/adp_retrans_en 0
recovery "go-back-N" ""
set_both cc_params/rp_enable 0
marks "nobody slows down" ""
marked_reads "nobody slows down" ""
set_both cc_params/rp_enable 1
marks "the sender slows down" "slows=1"
marked_reads "the sender slows down" "slows=1"
set_both cc_params/rp_enable 2
set_both roce_accl/selective_repeat_en 1
recovery "selective repeat" "selective=1"
set_both roce_accl/adp_retrans_en 1
last=$(wc -l <"$TMP/requests")
seen tail "the last request is lost, and asked after" "drop:a:new:$last" "selective=1 asks=1 timeout_us=$((timeout_us * 16))" "${writes/-T 16/-T 20}"

# rdma_rxe from before 7.2 has a device in a second namespace, but neither sends nor receives there
rxe_works() {
	local status
	modprobe -q rdma_rxe && middle_up rxe sroce || return
	ip netns exec "$M" "$OBSERVER" -a side_2 -b side_1 >/dev/null 2>&1 &
	observer=$!
	run_pair 60 $A "$VERIFY -d $DEV_A -i $IP_A" $B "$VERIFY -d $DEV_B -i $IP_B -1 -q 1 -M 1024 $writes $IP_A" >/dev/null
	status=$?
	kill $observer
	wait $observer
	observer=
	return $status
}
judge=a
if rxe_works; then
	set_both roce_accl/selective_repeat_en 0
	set_both roce_accl/adp_retrans_en 0
	recovery "to rdma_rxe" ""
	# It holds nothing: a sender that hopes it does has to find out
	set_both roce_accl/selective_repeat_en 1
	recovery "to rdma_rxe, as to one that may hold" "tries=1"
	set_both roce_accl/adp_retrans_en 1
	seen tail "to rdma_rxe: the last request is lost, and asked after" "drop:a:new:$last" \
		"asks=1 timeout_us=$((timeout_us * 16))" "${writes/-T 16/-T 20}"
	set_both cc_params/rp_enable 0
	marked_reads "to rdma_rxe" ""
	set_both cc_params/rp_enable 2
	judge=b
	middle_up sroce rxe || bail "no devices"
	recovery "from rdma_rxe" "holds=1"
	marks "from rdma_rxe" ""
else
	ktap_skip "rdma_rxe" "it is not there, or does not work in a second namespace"
fi
ktap_end
