#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What the verbs offer around the data path, by a program of our own, on one device and between two hosts; and what
# the stock tools make of it.
. "$(dirname "$0")/lib.sh"

VERBS=$(program verbs) || bail "verbs was not built"
[ "$DRIVER" = sroce ] || {
	ktap_skip "verbs" "what it tests is sroce's"
	ktap_end
}

devices_up 9000
# Not in a namespace: elsewhere than in the first one the core hides counters and what drivers have in sysfs.
program_verdicts "one device" 200 "$VERBS" -d $DEV_A -i $IP_A

# the port that belongs to the second flow label of the program
port=$((0xc000 | ((0xabcde & 0x3fff) ^ ((0xabcde & 0xfc000) >> 14))))
if command -v tcpdump >/dev/null; then
	: >"$TMP/tcpdump"
	in_ns $B timeout $((200 * SLOW)) tcpdump -i veth0 -c 1 -n udp src port $port and udp dst port 4791 \
		>"$TMP/tcpdump" 2>&1 &
	wait_for 10 grep -q listening "$TMP/tcpdump"
fi
program_verdicts "two hosts" 200 "$VERBS" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
if [ -s "$TMP/tcpdump" ]; then
	wait_for 5 grep -q "$IP_A.$port > $IP_B.4791" "$TMP/tcpdump"
	result $? "flow label: its packets have the source port $port"
else
	ktap_skip "flow label: on the wire" "no tcpdump"
fi

gid_a=$(gid_index $A $DEV_A $IP_A) gid_b=$(gid_index $B $DEV_B $IP_B)
pair "ibv_rc_pingpong with timestamps" 30 "ibv_rc_pingpong -d $DEV_A -g $gid_a -n 200 -t" \
	"ibv_rc_pingpong -d $DEV_B -g $gid_b -n 200 -t $IP_A"
grep -q 'Max receive completion clock cycles = [1-9]' "$TMP/client"
result $? "ibv_rc_pingpong with timestamps: they count"
grep 'completion clock' "$TMP/client" | notes
pair "ibv_rc_pingpong, new post send API" 30 "ibv_rc_pingpong -d $DEV_A -g $gid_a -n 200 -N -c" \
	"ibv_rc_pingpong -d $DEV_B -g $gid_b -n 200 -N -c $IP_A"
in_ns $A ibv_devinfo -v -d $DEV_A >"$TMP/devinfo"
grep -q 'hca_core_clock:.*1000000' "$TMP/devinfo" && grep -q 'max_pkeys:.*16' "$TMP/devinfo"
result $? "ibv_devinfo: clock and P_Keys"

# saw EVENT : ibv_asyncwatch has shown it
saw() {
	wait_for 10 grep -q "$1" "$TMP/asyncwatch"
	result $? "ibv_asyncwatch: $1"
}

: >"$TMP/asyncwatch"
stdbuf -oL ibv_asyncwatch -d $DEV_A >"$TMP/asyncwatch" 2>&1 &
wait_for 10 grep -q 'async event FD' "$TMP/asyncwatch"
echo 0xffff >/sys/class/infiniband/$DEV_A/ports/1/pkey_table
saw IBV_EVENT_PKEY_CHANGE
ip -n $A link set veth0 down
saw IBV_EVENT_PORT_ERR
ip -n $A link set veth0 up
saw IBV_EVENT_PORT_ACTIVE
saw IBV_EVENT_GID_CHANGE
link_del $A $DEV_A
result $? "the device goes while it is watched"
saw IBV_EVENT_DEVICE_FATAL
notes <"$TMP/asyncwatch"
ktap_end
