#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# two_machines.sh NUMBER NETDEV OUR_IP PEER_IP : run at the same time on two machines with a link between them,
# with NUMBER 1 on one and 2 on the other, and DRIVER as you like on each (sroce with sroce, sroce with rxe).
# Each is the server of the other in turn. Both print the results.
. "$(dirname "$0")/lib.sh"
. "$SELF/talk.sh"

number=${1:?two_machines.sh NUMBER NETDEV OUR_IP PEER_IP} netdev=$2 our=$3 peer=$4
DEV=srt_$number port=18610
MEET=$(program meet) || bail "meet was not built"

# No namespaces here: the functions of lib.sh take "-" for this machine.
in_ns() {
	[ "$1" != - ] || { "${@:2}"; return; }
	ip netns exec "$@"
}
finish() {
	rdma link del "$DEV" 2>/dev/null
	rm -rf "$TMP"
}
has_gid() { gid_index - "$DEV" "$our"; }

# meet NUMBER : wait for the other machine; its number
meet() {
	if [ "$number" = 1 ]; then
		"$MEET" $port 300 "$1"
	else
		"$MEET" $port 300 "$1" "$peer"
	fi
}

# as_server SECONDS COMMAND ; as_client SECONDS COMMAND : one side of a case; sets "other" to the peer's status
as_server() {
	local pid status
	timeout -k 2 $(($1 * SLOW)) bash -c "exec $2" >"$TMP/out" 2>&1 &
	pid=$!
	wait_for 20 eval "listening - || ! kill -0 $pid"
	meet 0 >/dev/null || return
	# the client's status comes when it is done
	other=$(meet 0) || return
	[ "$other" = 0 ] || kill $pid 2>/dev/null
	wait $pid
	status=$?
	meet $status >/dev/null
	return $status
}

as_client() {
	local status
	meet 0 >/dev/null || return
	timeout -k 2 $(($1 * SLOW)) bash -c "exec $2" >"$TMP/out" 2>&1
	status=$?
	meet $status >/dev/null || return
	other=$(meet 0) || return
	return $status
}

# round WHERE : all cases, with machine $1 as the server
round() {
	local server_nr=$1 where name seconds server client status sip=$our cip=$peer
	[ "$server_nr" = "$number" ] || sip=$peer cip=$our
	where="server is machine $server_nr"
	while IFS='|' read -r name seconds server client <&3; do
		other=1
		if [ "$server_nr" = "$number" ]; then
			as_server "$seconds" "$(talk_fill "$server" "$DEV" "$gid" "$sip" "$cip")"
		else
			as_client "$seconds" "$(talk_fill "$client" "$DEV" "$gid" "$sip" "$cip")"
		fi
		status=$?
		if [ $status -ne 0 ] || [ "$other" != 0 ]; then
			note "status here $status, there $other"
			notes 8 <"$TMP/out"
		fi
		[ $status -eq 0 ] && [ "$other" = 0 ]
		result $? "$where: $name"
	done 3< <(talk_cases)
}

driver_load
modprobe -aq "$(driver_module)"
limit 20 rdma link add "$DEV" type "$DRIVER" netdev "$netdev" || bail "no device on $netdev"
wait_for 20 has_gid || bail "no GID of $our"
gid=$(has_gid)
# rxe on either side decides what verify may do
they=$(meet "$([ "$DRIVER" = rxe ] && echo 1 || echo 0)") || bail "the other machine is not there"
[ "$DRIVER" != rxe ] && [ "$they" = 0 ] || VERIFY_OPTIONS=$RXE_VERIFY_OPTIONS
before=$(retransmissions - "$DEV") icrc=$(counter - "$DEV" rx_icrc_encapsulated)
bytes=$(cat "/sys/class/net/$netdev/statistics/tx_bytes")
round 1
round 2
bytes=$(($(cat "/sys/class/net/$netdev/statistics/tx_bytes") - bytes))
retries=$(($(retransmissions - "$DEV") - before)) icrc=$(($(counter - "$DEV" rx_icrc_encapsulated) - icrc))
note "machine $number ($DRIVER): $bytes bytes sent, $retries retransmissions or requests for one, $icrc ICRC errors"
[ $bytes -gt 1000000 ]
result $? "machine $number: the traffic crossed the link"
[ $icrc -eq 0 ]
result $? "machine $number: no ICRC errors"
[ $retries -le $((bytes / 1000000 + 50)) ]
result $? "machine $number: no retransmission storm"
meet 0 >/dev/null
rdma link del "$DEV"
driver_unload
result $? "machine $number: the module can be removed"
ktap_end
