#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# fio's ioengine=rdma, which posts a receive only when it has looked at the last one, and asks its peer for no
# patience: rnr_retry_count is 0. What fio sends it checks by CRC; of RDMA WRITE and READ it cannot.
. "$(dirname "$0")/lib.sh"

# what the shell says of jobs that were killed
exec 2>"$TMP/jobs"
DEPTH=16
# A process that is not run for longer than the driver waits for its receive loses the connection. On a machine that is
# busy that happens; where the driver does not wait, it happens each time. So most of the tries have to come to a good end:
# they go on until there are so many more of one sort than of the other.
AHEAD=5
# Where each try takes a minute, and the hosts are two machines
[ -z "${SHORT:-}" ] || AHEAD=2

fio_has_rdma() { command -v fio >/dev/null && fio --enghelp 2>/dev/null | grep -qw rdma; }
if ! fio_has_rdma; then
	ktap_skip "fio" "there is no fio with an rdma engine"
	ktap_end
fi

ended() { ! kill -0 "$1" 2>/dev/null; }

# over PID PID : both have ended, or one of them says why it is not going to
over() {
	{ ended "$1" && ended "$2"; } ||
		grep -qsE 'cq completion status|fio: .*(fail|err)' "$TMP/server" "$TMP/client"
}

# try_once SERVER_NS IP CLIENT_NS SIZE VERB [SERVER_OPTION...] : it ignores SIGTERM, and may hang after an error
try_once() {
	local sns=$1 ip=$2 cns=$3 size=$4 verb=$5 server client status=0 pid common
	shift 5
	# one process, so that nobody keeps the port when it is killed
	common=(--thread --ioengine=rdma --port=7174 --iodepth="$DEPTH" --bs="$size" --size="$((size * 1024))")
	(cd "$TMP" && exec ip netns exec "$sns" fio --name=receiver "${common[@]}" --rw=read "$@") >"$TMP/server" 2>&1 &
	server=$!
	wait_for 5 eval "listening $sns || ! kill -0 $server"
	(cd "$TMP" && exec ip netns exec "$cns" fio --name=sender "${common[@]}" --rw=write \
		--hostname="$ip" --verb="$verb" --do_verify=0 "$@") >"$TMP/client" 2>&1 &
	client=$!
	wait_for 20 over $server $client
	ended $server && ended $client || status=1
	[ $status -eq 0 ] || kill -9 $server $client 2>/dev/null
	for pid in $server $client; do
		wait "$pid" || status=1
	done
	return $status
}

# talk NAME ARGUMENTS OF try_once
talk() {
	local name=$1 good=0 bad=0
	shift
	while [ $((good - bad)) -lt $AHEAD ] && [ $((bad - good)) -lt $AHEAD ]; do
		if try_once "$@"; then
			note "well:$(grep -hoE ' (WRITE|READ): bw=[^,]*' "$TMP/client" | head -n 1)"
			good=$((good + 1))
		else
			note "badly: $(grep -hE 'status|err|fail' "$TMP/client" "$TMP/server" | head -n 1)"
			notes 3 <"$TMP/client"
			notes 3 <"$TMP/server"
			bad=$((bad + 1))
		fi
	done
	[ $good -gt $bad ]
	result $? "$name: $good times well, $bad times badly"
}

# on_one_host NAME ARGUMENTS OF try_once
on_one_host() { [ -n "${SHORT:-}" ] || talk "on one host, $1" "${@:2}"; }

devices_up 9000
for size in 4096 65536; do
	talk "between two hosts, send, $size bytes" $A $IP_A $B $size send --verify=crc32c
	on_one_host "send, $size bytes" $A $IP_A $A $size send --verify=crc32c
done
for verb in write read; do
	talk "between two hosts, $verb" $A $IP_A $B 65536 $verb
	on_one_host "$verb" $A $IP_A $A 65536 $verb
done
ktap_end
