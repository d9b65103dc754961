#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Raw packets: on one device, where they go through the device's own switch, and between two hosts; perftest's programs
# for them; and a netdev that moves to another namespace, and goes, while they are sent and received.
. "$(dirname "$0")/lib.sh"

[ "$DRIVER" = sroce ] || { ktap_skip raw "not with $DRIVER"; ktap_end; }
splats=$(splats)
devices_up 1500
file=$(program raw) || bail "raw was not built"
program_verdicts "two hosts" 240 "$file" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
odd=$(program raw_odd) || bail "raw_odd was not built"
program_verdicts "odd requests" 60 in_ns $A "$odd" -d $DEV_A -i $IP_A

# Tags that the device inserts: once by veth, and once by the stack, because veth cannot
vlan=$(program raw_vlan) || bail "raw_vlan was not built"
program_verdicts "VLAN tags" 60 in_ns $B "$vlan" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
on_a ethtool -K veth0 tx-vlan-offload off
result $? "a netdev that cannot insert tags"
program_verdicts "VLAN tags, without that" 60 in_ns $B "$vlan" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
on_a ethtool -K veth0 tx-vlan-offload on

# A rule that has the host receive what it sends, at once (before Linux 6.8)
mirror=$(program raw_mirror) || bail "raw_mirror was not built"
on_a tc qdisc add dev veth0 clsact &&
	on_a tc filter add dev veth0 egress matchall action mirred ingress mirror dev veth0
result $? "all that the host sends is mirrored"
program_verdicts "mirrored to itself" 120 on_a "$mirror" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
on_a tc qdisc del dev veth0 clsact

# 7500 and 7680 copies of each packet, of which none may be missing
torrent=$(program torrent) || bail "torrent was not built"
for options in "-f 12 -m 64 -l 40000" "-f 16 -m 100 -l 48000"; do
	# shellcheck disable=SC2086 # words
	check "all copies: $options" 60 "$torrent" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B $options -t 1 -a
	notes 1 <"$TMP/out"
done

mac_of() { in_ns "$1" cat /sys/class/net/veth0/address; }

# try_perftest PROGRAM [OPTION...] : between the hosts; the server has its flow after a moment, and nobody says when. Nothing asks
# for a frame again, so a server that waits for a number of them may wait for ever: it is judged by what it tells, if it tells.
try_perftest() {
	local tool=$1 server status
	shift
	in_ns $B "$tool" -d $DEV_B --server -B "$(mac_of $B)" -E "$(mac_of $A)" -J $IP_B -K 7000 -j $IP_A -k 6000 \
		"$@" >"$TMP/server" 2>&1 &
	server=$!
	sleep 2
	limit 60 in_ns $A "$tool" -d $DEV_A --client -B "$(mac_of $A)" -E "$(mac_of $B)" -J $IP_B -K 7000 -j $IP_A -k 6000 \
		"$@" >"$TMP/client" 2>&1
	status=$?
	wait_for 20 ended $server || kill -9 $server
	wait $server 2>/dev/null
	return $status
}

# perftest PROGRAM [OPTION...] : on a machine that is busy with other things it does not find out how fast the processor's clock
# is, and gives no report; that says nothing of frames
perftest() {
	local try status
	for try in 1 2 3 4 5; do
		try_perftest "$@"
		status=$?
		grep -q '^Correlation coefficient' "$TMP/client" "$TMP/server" || break
		note "perftest does not know the processor's clock, in attempt $try"
	done
	result $status "$*"
	[ $status -eq 0 ] || notes <"$TMP/client"
}

ended() { ! kill -0 "$1" 2>/dev/null; }

if command -v raw_ethernet_bw >/dev/null; then
	# two seconds at each end do not count
	perftest raw_ethernet_bw -s 1024 -D 6
	# of a size: frames, peak, average in MB/s, millions of frames a second
	awk '$1 == 1024 && $4 > 0 { print; found = 1 } END { exit !found }' "$TMP/server" | notes 1
	result "${PIPESTATUS[0]}" "raw_ethernet_bw: they are received" || notes <"$TMP/server"
	perftest raw_ethernet_lat -s 64 -n 500
else
	ktap_skip "perftest's raw_ethernet_bw and raw_ethernet_lat" "not installed"
fi
if command -v raw_ethernet_fs_rate >/dev/null; then
	# without ports all of its flows would say the same
	limit 60 in_ns $A raw_ethernet_fs_rate -d $DEV_A --server -B "$(mac_of $A)" -J $IP_A -K 7000 -j $IP_B -k 6000 \
		-n 1000 >"$TMP/fs" 2>&1
	result $? "raw_ethernet_fs_rate"
	notes 6 <"$TMP/fs"
fi

# --- netdevs that move and go -------------------------------------------------------------------------

# while_it_stays NAME SECONDS CHANGE COMMAND... : one of our programs that says "# ready" and goes on when it reads a line; what
# is changed in between
mkfifo "$TMP/go"
exec 9<>"$TMP/go"
while_it_stays() {
	local name=$1 seconds=$2 change=$3 pid
	shift 3
	limit "$seconds" "$@" <"$TMP/go" >"$TMP/verdicts" 2>&1 &
	pid=$!
	wait_for 60 grep -q '^# ready' "$TMP/verdicts"
	result $? "$name: all is there"
	"$change"
	echo >&9
	wait $pid
	verdicts "$name" "$TMP/verdicts"
	tail -n 1 "$TMP/verdicts" | grep -q ' wrong$'
	result $? "$name: came to its end"
	tail -n 1 "$TMP/verdicts" | notes
}

b_moves() {
	ip -n "$B" link set veth0 netns "$A" name veth1 && ip -n "$A" link set veth1 up
	result $? "its netdev moves"
}
b_returns() {
	ip -n $A link set veth1 netns $B name veth0
	ip -n $B link set veth0 up
	ip -n $B addr add $IP_B/24 dev veth0
}
a_goes() { check "its device goes meanwhile" 20 link_del "$A" "$DEV_A"; }

while_it_stays "a netdev that moves" 60 b_moves "$file" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B -s
b_returns
while_it_stays "a device that goes" 60 a_goes "$odd" -d $DEV_A -i $IP_A -s
link_add_soon $A $DEV_A

# stream : frames from A to B, for as long as they can; it has begun when this returns
stream() {
	on_b raw_ethernet_bw -d $DEV_B --server -B "$(mac_of $B)" -E "$(mac_of $A)" -J $IP_B -K 7000 -j $IP_A -k 6000 \
		-D 60 >"$TMP/server" 2>&1 &
	receiver=$!
	sleep 1
	on_a raw_ethernet_bw -d $DEV_A --client -B "$(mac_of $A)" -E "$(mac_of $B)" -J $IP_B -K 7000 -j $IP_A -k 6000 \
		-D 60 >"$TMP/client" 2>&1 &
	sender=$!
	wait_for 20 carried
}

packets() { on_b cat /sys/class/net/veth0/statistics/rx_packets; }
carried() {
	local before
	before=$(packets)
	sleep 0.2
	[ $(($(packets) - before)) -gt 20 ]
}

stream_end() {
	kill -9 $sender $receiver 2>/dev/null
	wait $sender $receiver 2>/dev/null
}

if command -v raw_ethernet_bw >/dev/null; then
	stream
	result $? "frames flow"
	ip -n $B link set veth0 netns $A name veth1
	result $? "the receiver's netdev moves to another namespace meanwhile"
	stream_end
	b_returns
	stream
	result $? "frames flow to new queues"
	check "the sender's device goes meanwhile" 20 link_del $A $DEV_A
	stream_end
	link_add_soon $A $DEV_A
	stream
	result $? "frames flow from a new device"
	limit 20 ip -n $B link del veth0
	result $? "the netdevs go meanwhile"
	stream_end
else
	ktap_skip "a netdev that moves and goes" "no raw_ethernet_bw"
fi

unharmed "$splats"
