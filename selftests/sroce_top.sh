#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce-top: what it shows of devices and queue pairs at work agrees with the counters and with itself; losses are shown;
# a user without rights, a device that goes, a terminal.
. "$(dirname "$0")/lib.sh"

TOP=$SELF/../tools/host/sroce-top
[ "$DRIVER" = sroce ] || bail "sroce-top is about sroce"
[ -x "$TOP" ] || bail "no $TOP"
command -v python3 >/dev/null || bail "no python3"
VERIFY=$(program verify) || bail "verify was not built"
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
# traffic SECONDS : in the background, between the two hosts, for so long
traffic() {
	# shellcheck disable=SC2086 # two words, or none
	in_ns $B $VERIFY -d $DEV_B -i $IP_B >"$TMP/server" 2>&1 &
	server=$!
	wait_for 20 listening $B 18515 || wait_for 1 true
	in_ns $A "$CLIENT" -d $DEV_A -i $IP_A -t "$1" $IP_B >"$TMP/client" 2>&1 &
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
