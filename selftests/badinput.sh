#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A process that lies to the kernel: in structures, sizes, handles, keys, mappings, doorbells and ring contents;
# left to its end, and killed in the middle. Another process on the same device must not notice, and the kernel
# log must be clean afterwards.
#
# ROUNDS=N (3; 30 in a full run)  SEED=N
. "$(dirname "$0")/lib.sh"

HOSTILE=$(program hostile) && VERIFY=$(program verify) || bail "hostile or verify was not built"
amount ROUNDS 3 30
seeded ROUNDS
if [ "$DRIVER" != sroce ]; then
	ktap_skip "hostile" "it speaks sroce's ABI only"
	ktap_end
fi

# uverbs_of NAMESPACE DEVICE
uverbs_of() {
	# shellcheck disable=SC2016 # for the inner shell
	in_ns "$1" bash -c 'grep -lx "$0" /sys/class/infiniband_verbs/*/ibdev | cut -d / -f 5' "$2"
}

devices_up 9000
before=$(splats)

# somebody else, all the time
seconds=$((ROUNDS * 4 + 20))
: >"$TMP/bystander"
ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A --show-qps >"$TMP/bystander" 2>&1 &
bystander=$!
ip netns exec $B "$VERIFY" -d $DEV_B -i $IP_B -t $seconds -m 65536 $IP_A >"$TMP/peer" 2>&1 &
peer=$!
wait_for 10 grep -q 'qp .*peer' "$TMP/bystander"
others=()
while read -r q; do others+=(-q "$q"); done < <(awk '/^qp / { print $2 }' "$TMP/bystander")

# an array and not a function, so that it can be killed
hostile=(ip netns exec "$A" "$HOSTILE" -u "/dev/infiniband/$(uverbs_of "$A" "$DEV_A")"
	-g "$(gid_index "$A" "$DEV_A" "$IP_A")" -G "::ffff:$IP_A" "${others[@]}")
program_verdicts "hostile" 120 "${hostile[@]}" -t 5 -s "$SEED"

for ((i = 1; i <= ROUNDS; i++)); do
	"${hostile[@]}" -t 30 -s "$RANDOM" >"$TMP/hostile" 2>&1 &
	victim=$!
	sleep "$((2 + RANDOM % 2)).$((RANDOM % 10))"
	kill -9 $victim
	# it must not be stuck in the kernel
	wait_for 10 eval "! kill -0 $victim"
	result $? "$i: killed in the middle"
	{ wait $victim; } 2>/dev/null
done
wait_for 10 eval "! rdma resource show qp | grep 'link $DEV_A/' | grep -q 'comm hostile'"
result $? "no queue pair of it is left"

undisturbed "another process did not notice" $bystander $peer

pair "new connections work" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"
unharmed "$before"
