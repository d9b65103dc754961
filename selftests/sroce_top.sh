#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce-top: what it shows of devices and queue pairs at work agrees with the counters, with `rdma resource` and with
# itself; losses are shown; a user without rights, a device that goes, a terminal.
. "$(dirname "$0")/lib.sh"

TOP=$SELF/../tools/host/sroce-top
[ "$DRIVER" = sroce ] || bail "sroce-top is about sroce"
[ -x "$TOP" ] || bail "no $TOP"
command -v python3 >/dev/null || bail "no python3"
VERIFY=$(program verify) && QPSTATE=$(program qpstate) || bail "verify or qpstate was not built"
export PYTHONDONTWRITEBYTECODE=1
trap finish EXIT
# A name that its user has chosen, which rdma prints as it is
CLIENT=$TMP/$'veri\ey'
cp "$VERIFY" "$CLIENT"
amount LOOKS 3 10

top() { limit 60 in_ns $A python3 "$TOP" "$@"; }
# asked PROGRAM : a few lines of Python about what --json has printed, in "looks", the last of them in "last"
asked() {
	python3 -c "import json, sys
looks = [json.loads(line) for line in open('$TMP/json')]
last = looks[-1]
device = next((one for one in last['devices'] if one['device'] == '$DEV_A'), None)
$1"
}
value() { asked "print($1)"; }
# holds NAME CONDITION : of Python
holds() {
	asked "sys.exit(not ($2))" 2>"$TMP/python"
	set -- $? "$1"
	[ "$1" -eq 0 ] || { tail -n 1 "$TMP/json" | cut -c1-1500 | notes; notes <"$TMP/python"; }
	result "$1" "$2"
}
# traffic SECONDS : in the background, between the two hosts, for so long; MORE: options of both ends
traffic() {
	# shellcheck disable=SC2086 # words
	in_ns $B $VERIFY ${MORE:-} -d $DEV_B -i $IP_B >"$TMP/server" 2>&1 &
	server=$!
	wait_for 20 listening $B 18515 || wait_for 1 true
	# shellcheck disable=SC2086 # words
	in_ns $A "$CLIENT" ${MORE:-} -d $DEV_A -i $IP_A -t "$1" $IP_B >"$TMP/client" 2>&1 &
	client=$!
	sleep 1
}
traffic_ends() {
	wait $client
	client_status=$?
	wait $server
	[ $client_status -eq 0 ]
}

devices_up 9000
top --json -n 1 -d 0.5 >"$TMP/json"
holds "an idle device is shown" "device['netdev'] == 'veth0' and device['state'] == 'ACTIVE'"
holds "and does nothing" "device['tx_packets'] == 0 and device['resent'] == 0"

traffic $(((LOOKS * 2 + 8) * SLOW))
before=$(counter $A $DEV_A rdma_tx_packets)
top --json -n "$LOOKS" -d 1 >"$TMP/json"
after=$(counter $A $DEV_A rdma_tx_packets)
holds "so many looks as were asked for" "len(looks) == $LOOKS"
note "$((after - before)) packets; shown: $(value 'round(sum(d["tx_packets"] * l["seconds"] for l in looks for d in l["devices"] if d["device"] == "'$DEV_A'"))')"
holds "packets: between the counter's difference and half of it" "0.5 * $((after - before)) <= sum(d['tx_packets'] * l['seconds']
	for l in looks for d in l['devices'] if d['device'] == '$DEV_A') <= $((after - before))"
holds "bytes and trains fit the packets" "100 <= device['tx_bytes'] / device['tx_packets'] <= 4200 and 1 <= device['packets_per_train'] <= 128"
holds "the other host's device works, too" "any(d['device'] == '$DEV_B' and d['rx_packets'] > 0 for d in last['devices'])"
holds "its queue pairs, whatever their program is called" "device['queue_pairs'] >= 2 and any(q['program'] == 'veri\\x1by' and q['type'] == 'RC' and q['state'] == 'RTS' and q['messages'] > 0
	for q in last['queue_pairs'] if q['device'] == '$DEV_A')"
holds "the busiest come first" "(lambda r: r == sorted(r, reverse=True))([q['tx_psns'] + q['rx_psns'] + q['messages'] for q in last['queue_pairs']])"
holds "PSNs of the queue pairs, and packets of the device" "0.5 * device['tx_packets'] <= sum(q['tx_psns'] for q in last['queue_pairs'] if q['device'] == '$DEV_A')"
traffic_ends
result $? "what was looked at was not disturbed"

tc -n $A qdisc add dev veth0 root netem loss 5% limit 10000 2>/dev/null
lossy=$?
traffic $((10 * SLOW))
# first, while there is traffic for certain
top --json -n 1 -d 3 -q 1 >"$TMP/json"
holds "so many queue pairs as are wanted" "len(last['queue_pairs']) == 1"
if [ $lossy -eq 0 ]; then
	holds "losses are shown" "device['resent'] > 0"
	tc -n $A qdisc del dev veth0 root
else
	ktap_skip "losses are shown" "no netem in this kernel"
fi
top -n 1 -d 3 $DEV_A >"$TMP/text"
notes 6 <"$TMP/text"
grep -q "^DEVICE .* RESENT " "$TMP/text" && grep -qE "^$DEV_A +veth0 +ACTIVE " "$TMP/text" && grep -qE "^DEVICE +QPN .* PROGRAM\$" "$TMP/text"
result $? "in lines, where the output is no terminal"
! grep -q "^$DEV_B " "$TMP/text"
result $? "of the devices that are named"
limit 30 in_ns $A setpriv --reuid 65534 --regid 65534 --clear-groups python3 "$TOP" --json -n 1 -d 1 >"$TMP/json"
holds "a user without rights sees devices, and no PSNs" "device and all(q['tx_psns'] is None for q in last['queue_pairs'])"
traffic_ends
top --json -n 1 -d 1 -q 0 >"$TMP/json"
holds "no queue pairs where none are wanted" "last['queue_pairs'] == [] and device['queue_pairs'] is None"
top -n 1 -d 0.5 -q 0 $DEV_A >"$TMP/text"
grep -qE "^$DEV_A .* -\$" "$TMP/text"
result $? "nor a number of them that nobody has asked for"

# --- each column, against what it is made of ---------------------------------------------------------------------

looks_are() { [ "$(wc -l <"$TMP/looks")" -ge "$1" ]; }
# shown COMMAND... : what it shows of all that a command does: it looks before that begins, and again after it has ended
shown() {
	local looking number
	: >"$TMP/looks"
	ip netns exec $A python3 "$TOP" --json -q 0 -d 0.5 >"$TMP/looks" 2>"$TMP/errors" &
	looking=$!
	wait_for 30 looks_are 1
	counters $A $DEV_A >"$TMP/before"
	"$@"
	sleep 0.5
	counters $A $DEV_A >"$TMP/after"
	number=$(($(wc -l <"$TMP/looks") + 2))
	wait_for 30 looks_are $number
	kill $looking
	wait $looking
	head -n $number "$TMP/looks" >"$TMP/json"
}
# counted COLUMN COUNTER... : the column's sum over all looks is what these have counted on $DEV_A, and that is not nothing
counted() {
	local sum column=$1 all
	shift
	all=$(awk -v names=" $* " 'index(names, " " $1 " ") { n[FILENAME] += $2 } END { print n[ARGV[2]] - n[ARGV[1]] }' "$TMP/before" "$TMP/after")
	sum=$(value "round(sum(d['$column'] * l['seconds'] for l in looks for d in l['devices'] if d['device'] == '$DEV_A'))")
	[ "$all" -gt 0 ] && [ "$sum" = "$all" ]
	result $? "$column: $sum are shown, $all counted ($*)"
}
# mark NAMESPACE : all that leaves there has met congestion
mark() {
	tc -n "$1" qdisc replace dev veth0 clsact 2>/dev/null && tc -n "$1" filter add dev veth0 egress protocol ip matchall \
		action pedit ex munge ip tos set 3 retain 3 pipe action csum ip4h 2>/dev/null
}
react() {
	local dev
	for dev in $DEV_A $DEV_B; do echo "$1" >"/sys/class/infiniband/$dev/ports/1/cc_params/rp_enable"; done
}
some_traffic() {
	traffic "$1"
	traffic_ends
}

devices_up 9000
# receivers that are not ready, losses that only a timeout tells of, and what no RoCE packet is long enough for
trouble() {
	check "qpstate" 120 "$QPSTATE" -d "$DEV_A" -i "$IP_A" -D "$DEV_B" -I "$IP_B"
	in_ns "$B" python3 -c "import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.sendto(b'8 bytes.', ('$IP_A', 4791))"
}
shown trouble
counted timeouts local_ack_timeout_err
counted rnr out_of_buffer rnr_nak_retry_err
counted resent retrans_packets
counted dropped tx_dropped_packets rx_icrc_encapsulated rx_malformed_packets rx_discarded_packets
if [ $lossy -eq 0 ]; then
	tc -n $A qdisc add dev veth0 root netem loss 5% limit 10000
	shown some_traffic $((4 * SLOW))
	tc -n $A qdisc del dev veth0 root
	counted gaps packet_seq_err implied_nak_seq_err
else
	ktap_skip "gaps" "no netem in this kernel"
fi

# what_rdma_tells FILE : of queue pairs, what columns are made of
what_rdma_tells() {
	on_a rdma -j -dd resource show qp link $DEV_A/1 | python3 -c '
import json, sys
for one in json.loads(sys.stdin.read(), strict=False):
    if one["type"] == "RC":
        print(one["lqpn"], (one["drv_sq_next_psn"] - one["drv_sq_una_psn"]) % 2**24, (one["drv_sq_fetched"] - one["drv_sq_done"]) % 2**32,
              one["drv_sq_retries_left"], round(one["drv_cc_srtt_ns"] / 1000), round(one["drv_cc_rate_kbps"] / 1000))' | sort >"$1"
}
# what_top_shows FILE : the same, from the lines that it prints; a dash is 0
what_top_shows() {
	top -b -n 1 -d 0.3 $DEV_A | awk -v wanted="QPN FLIGHT QUEUED TRIES RTT-us RATE-Mb/s" '
		$1 == "DEVICE" { for (i in at) delete at[i]; for (i = 1; i <= NF; i++) at[$i] = i; n = split(wanted, names, " "); next }
		("QPN" in at) && $at["TYPE"] == "RC" {
			for (i = 1; i <= n; i++) printf "%s%s", $at[names[i]] == "-" ? 0 : $at[names[i]], i < n ? " " : "\n"
		}' | sort >"$1"
}
# What waits for an answer that does not come stays as it is, but for the tries that are left
same_again() {
	local try
	for try in {1..8}; do
		what_rdma_tells "$TMP/told" && what_top_shows "$TMP/top" && what_rdma_tells "$TMP/told.after" &&
			cmp -s "$TMP/told" "$TMP/told.after" && return
		note "look $try: they have moved meanwhile"
	done
	return 1
}
stalled() {
	# An answer takes 20 ms, and packets are marked; then none arrives
	tc -n $A qdisc add dev veth0 root netem delay 20ms limit 10000
	MORE="-T 22" traffic $((6 * SLOW))
	sleep $((2 * SLOW))
	tc -n $A qdisc change dev veth0 root netem delay 20ms loss 100% limit 10000
	sleep 1
	same_again
	result $? "queue pairs that wait"
	notes 4 <"$TMP/told"
	[ -s "$TMP/told" ] && cmp "$TMP/told" "$TMP/top"
	result $? "FLIGHT, QUEUED, TRIES, RTT and RATE are what rdma tells"
	awk '$2 > 0 && $3 > 0 && $4 > 0 && $5 >= 20000 && $6 > 0 { found = 1 } END { exit !found }' "$TMP/told"
	result $? "and none of them is nothing"
	# shellcheck disable=SC2046 # numbers
	kill -9 $(ip netns pids $A) $(ip netns pids $B)
	wait $client $server 2>/dev/null
	tc -n $A qdisc del dev veth0 root
}
react 1
if mark $A && mark $B; then
	# A rate that all packets lower would fall without end
	for dev in $DEV_A $DEV_B; do echo 200 >"/sys/class/infiniband/$dev/ports/1/cc_params/rp_min_rate"; done
	shown some_traffic $((4 * SLOW))
	counted marked np_ecn_marked_roce_packets
	counted cnps np_cnp_sent rp_cnp_handled rp_cnp_ignored
	if [ $lossy -eq 0 ]; then stalled; else ktap_skip "queue pairs that wait" "no netem in this kernel"; fi
else
	ktap_skip "marked packets" "tc cannot mark packets"
fi

devices_up 9000
# A device that goes while it is looked at, and comes again
top --json -n 6 -d 0.5 >"$TMP/json" 2>"$TMP/errors" &
looking=$!
sleep 1
link_del $A $DEV_A && link_add $A $DEV_A
wait $looking && [ ! -s "$TMP/errors" ] && [ "$(wc -l <"$TMP/json")" -eq 6 ]
result $? "a device that goes and comes again"

# On a terminal
cat >"$TMP/terminal.py" <<'END'
"""terminal.py keys|end|term PROGRAM... : on a terminal of its own, with keys until q, without input, or until it is told to end"""
import os, pty, select, signal, sys, time
how, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    if how == "end":
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.execvp(command[0], command)
seen, keys, there, end = b"", [b"\x1bOB", b"\x1bOA", b"q"], None, time.time() + 40
while time.time() < end:
    if select.select([terminal], [], [], 0.2)[0]:
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            break
    if how == "keys" and keys and b"srt_a" in seen:
        os.write(terminal, keys.pop(0))
        time.sleep(0.3)
    there = there or (b"quit" in seen and time.time())
    if how != "keys" and there and time.time() > there + 5:
        os.kill(child, signal.SIGTERM)
        there = end
_, status, usage = os.wait4(child, 0)
sys.stdout.buffer.write(seen)
print(f"\n{usage.ru_utime + usage.ru_stime:.1f} s of a processor")
sys.exit(os.waitstatus_to_exitcode(status))
END
on_terminal() { limit 90 in_ns $A python3 "$TMP/terminal.py" "$1" python3 "$TOP" "${@:2}" >"$TMP/screen"; }
on_terminal keys -d 1
status=$?
grep -q "srt_a" "$TMP/screen" && ! grep -q Traceback "$TMP/screen" && [ $status -eq 0 ]
result $? "on a terminal, with keys, until q (status $status)"
grep -A 5 Traceback "$TMP/screen" | notes
on_terminal term -d 60
status=$?
grep -qF $'\033[?1049l' "$TMP/screen" && [ $status -eq 143 ]
result $? "told to end, it gives the terminal back (status $status)"
note "$(tail -n 1 "$TMP/screen")"
waiting=$(tail -n 1 "$TMP/screen")
on_terminal end -d 60
reading=$(tail -n 1 "$TMP/screen")
awk -v a="${waiting%% *}" -v b="${reading%% *}" 'BEGIN { exit !(b <= 2 * a + 1) }'
result $? "at the end of its input it waits, too (${reading% of*}, and ${waiting% of*} without that)"
python3 -c "import sys
sys.path.insert(0, '$SELF/../tools/host')
from sroce_tools import table
sys.exit(table.cell('\x1b[2J\nx', -15, str) != '?[2J?x'.ljust(15))"
result $? "names that a terminal would obey are not sent to it"
top -n 1 -d 0.1 >/dev/full 2>"$TMP/errors"
[ $? -eq 1 ] && [ "$(wc -l <"$TMP/errors")" -eq 1 ]
result $? "a disk that is full"
notes <"$TMP/errors"
top -n 1 -d 0.1 >&- 2>"$TMP/errors" && [ ! -s "$TMP/errors" ]
result $? "without an output"
top -n 1 -d 0.1 $DEV_A nothing >"$TMP/text"
grep -q "^there is no sroce device nothing\$" "$TMP/text"
result $? "a device that there is none of"
top -d 0 >/dev/null 2>&1
[ $? -eq 2 ]
result $? "wrong arguments"
ktap_end
