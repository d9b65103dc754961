#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Sudden ends at random moments under traffic, with files open: a peer is killed, the RDMA link, the netdev,
# the namespace are removed. Nobody hangs, nothing of it is left, and new connections work.
#
# ITERATIONS=N (10; 200 in a full run)  SEED=N
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) && ORPHAN=$(program orphan) || bail "verify or orphan was not built"
amount ITERATIONS 10 200
seeded ITERATIONS

ways=(kill_client kill_server kill_both delete_link delete_peer_link delete_netdev delete_namespace kill_in_setup)

# start NAMESPACE COMMAND... : in the background, remembered
pids=() what=()
start() {
	ip netns exec "$@" >>"$TMP/log.${#pids[@]}" 2>&1 &
	pids+=($!)
	what+=("${*:2}")
}

start_traffic() {
	pids=() what=()
	rm -f "$TMP"/log.*
	start $A "$VERIFY" -d $DEV_A -i $IP_A -S 12
	# shellcheck disable=SC2086 # options
	start $B "$VERIFY" -d $DEV_B -i $IP_B -S 12 -t 60 -q 8 $VERIFY_OPTIONS $IP_A
	start $A ib_write_bw -F -d $DEV_A -x "$(gid_index $A $DEV_A $IP_A)" -s 65536 -D 60
	# perftest's client does not wait for its server (port 18515)
	wait_for 5 in_ns $A grep -qi ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6
	start $B ib_write_bw -F -d $DEV_B -x "$(gid_index $B $DEV_B $IP_B)" -s 65536 -D 60 $IP_A
	start $A rping -s -a $IP_A
	start $B rping -c -a $IP_A -C 100000
	# these only hold the devices open, from a namespace that lives on
	start $HOLD ibv_asyncwatch -d $DEV_A
	start $HOLD ibv_asyncwatch -d $DEV_B
}

# rxe cannot lose a device that is open: whoever holds it is killed a moment later
removal() {
	local status
	[ "$DRIVER" != rxe ] || (sleep 0.3; kill -9 "${pids[@]}" 2>/dev/null) &
	limit 20 "$@" >"$TMP/out" 2>&1
	status=$?
	[ "$status" -eq 0 ] || { note "status $status of $*"; notes <"$TMP/out"; }
	return "$status"
}

kill_client() { kill -9 "${pids[1]}" "${pids[3]}" "${pids[5]}"; }
kill_server() { kill -9 "${pids[0]}" "${pids[2]}" "${pids[4]}"; }
kill_both() { kill -9 "${pids[@]}"; }
delete_link() { removal ip netns exec "$A" rdma link del "$DEV_A"; }
delete_peer_link() { removal ip netns exec "$B" rdma link del "$DEV_B"; }
delete_netdev() { removal ip -n "$A" link del veth0; }
# The processes in it would keep it alive; the holders of its device are elsewhere.
delete_namespace() {
	kill -9 "${pids[1]}" "${pids[3]}" "${pids[5]}"
	removal ip netns del "$B"
}
kill_in_setup() { kill -9 "${pids[@]}"; }

# ended PID SECONDS : its status; 124 when it does not end
ended() {
	local end=$((SECONDS + $2 * SLOW))
	while kill -0 "$1" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 124
		sleep 0.1
	done
	wait "$1"
}

# What a process leaves behind is taken apart in no order of ours, and its memory regions may go before its
# queue pairs. Then the peer is told so, rightly. (Of a device that goes, nobody must notice that.)
peer_died() {
	case $way in
	kill_* | delete_namespace) grep -qE 'send completion: remote (access|operation) error' "$1" ;;
	*) return 1 ;;
	esac
}

# The rest of the programs either finds out by itself, or is waiting for ever by design: then it is killed,
# and has to die of that. verify must never have seen wrong data (1) or an endless wait (4).
aftermath() {
	local i status bad=0
	for i in 0 1; do
		ended "${pids[i]}" 20
		status=$?
		case $status in
		0 | 3 | 137) ;;
		1) peer_died "$TMP/log.$i" || { bad=1 && note "status 1: ${what[i]}" && notes 3 <"$TMP/log.$i"; } ;;
		*) bad=1 && note "status $status: ${what[i]}" && notes 3 <"$TMP/log.$i" ;;
		esac
	done
	kill -9 "${pids[@]}" 2>/dev/null
	for i in "${!pids[@]}"; do
		ended "${pids[i]}" 10
		[ $? -ne 124 ] || { bad=1; note "cannot be killed: ${what[i]}"; }
	done
	return $bad
}

# no object of a process is left on a device
clean() { ! rdma resource show qp 2>/dev/null | grep "link srt_[ab]/" | grep -v 'comm \['; }

# Only bash itself writes there, about each job that was killed; the programs have their logs.
exec 2>/dev/null

HOLD=srtest_hold
ip netns del $HOLD 2>/dev/null
host_ns $HOLD
trap 'ip netns del $HOLD; finish' EXIT

# What a process sees whose device goes, call by call
if [ "$DRIVER" = sroce ]; then
	devices_up 9000
	program_verdicts "link deleted" 60 "$ORPHAN" -d $DEV_A -i $IP_A ip netns exec $A rdma link del $DEV_A
	devices_up 9000
	program_verdicts "netdev deleted" 60 "$ORPHAN" -d $DEV_A -i $IP_A ip -n $A link del veth0
else
	ktap_skip "orphan" "a device of $DRIVER cannot go while it is open"
fi

devices_up 9000
for ((i = 1; i <= ITERATIONS; i++)); do
	way=${ways[(i - 1) % ${#ways[@]}]}
	start_traffic
	[ "$way" = kill_in_setup ] || sleep "0.$((RANDOM % 9))$((RANDOM % 9))"
	$way
	status=$?
	aftermath || status=1
	wait_for 5 clean || { status=1; note "left over: $(rdma resource show qp | grep srt_ | head -n 3)"; }
	if [ $((i % 10)) -eq 0 ]; then
		hosts_down
		driver_unload || { status=1; note "the module cannot be removed"; }
		driver_load
	fi
	# the next one finds everything as it should be
	case $way$((i % 10)) in
	kill_*[1-9]) ;;
	*) devices_up 9000 ;;
	esac
	result $status "$i: $way"
done

pair "new connections work" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 5 $VERIFY_OPTIONS $IP_A"
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
