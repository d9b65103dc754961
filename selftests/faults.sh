#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# faults.sh : a kernel that runs out of memory, or that cannot read or write a process's: at every place of every
# call in turn, and at random under traffic. Nothing is left behind, nothing hangs, nothing complains, and afterwards
# all of it works. Needs CONFIG_FAULT_INJECTION with its debugfs (the sanitizer kernel has it).
#
# MOST=N (60; in a full run all, of "rdma link add" 3000): places of a call that are tried   SEED=N
. "$(dirname "$0")/lib.sh"

FAULTS=$(program faults) && VERIFY=$(program verify) || bail "faults or verify was not built"
amount MOST 60 3000
seeded MOST
kinds=/sys/kernel/debug
if [ ! -e $kinds/failslab ] || [ ! -e /proc/self/fail-nth ]; then
	ktap_skip "faults" "this kernel does not fail on demand"
	ktap_end
fi

# knob KIND NAME=VALUE... : of those kinds that the kernel has
knob() {
	local kind=$kinds/$1 k
	shift
	[ -d "$kind" ] || return 0
	for k; do echo "${k#*=}" >"$kind/${k%%=*}"; done
}

# Quiet, because what they would print looks like a complaint
faults_off() {
	local kind
	for kind in failslab fail_page_alloc fail_usercopy fail_skb_realloc; do
		knob $kind probability=0 verbose=0 interval=1 times=-1 space=0 task-filter=N
	done
	# those who can wait for memory, too, and single pages, but not what processes map
	knob failslab ignore-gfp-wait=N
	knob fail_page_alloc ignore-gfp-wait=N ignore-gfp-highmem=Y min-order=0
}

# faults_on WHOSE PERCENT KIND... : of all, or of those who cannot wait for memory (atomic)
faults_on() {
	local whose=$1 percent=$2 kind
	shift 2
	note "faults: $whose, $percent %: $*"
	for kind; do
		[ "$whose" != atomic ] || knob "$kind" ignore-gfp-wait=Y
		knob "$kind" probability="$percent"
	done
}
trap 'faults_off; finish' EXIT

resources() { rdma resource show | sed -n "s/.*[0-9]*: \($DEV_A\|$DEV_B\): //p"; }
works() { pair "$1" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"; }

faults_off
devices_up 9000
before=$(splats) unused=$(resources)
idle() { [ "$(resources)" = "$unused" ]; }

# --- at every place ------------------------------------------------------------------------------------------

program_verdicts "calls" 400 "$FAULTS" -n "$MOST" -s "$SEED" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
wait_for 10 idle
result $? "calls: nothing is left"
works "calls: others can talk"

ip -n $A link add fault0 type dummy && ip -n $A link set fault0 up && ip -n $A addr add 10.98.7.1/24 dev fault0
program_verdicts "links" 400 ip netns exec $A "$FAULTS" -n "$MOST" -s "$SEED" -l srt_fault -N fault0
ip -n $A link del fault0

# --- at random, under traffic ----------------------------------------------------------------------------------

under_way() { [ "$(rdma resource show qp | grep 'comm verify' | grep -c 'state RTS')" -ge 8 ]; }

# traffic NAME FAULTS... : verify, which compares every byte; what is lost is sent again. The faults begin when it is
# under way: without memory a process may well fail to open its connections.
traffic() {
	local name=$1 starter
	shift
	{ wait_for 60 under_way && faults_on "$@"; } &
	starter=$!
	pair "$name" 90 "$VERIFY -d $DEV_A -i $IP_A -q 4" "$VERIFY -d $DEV_B -i $IP_B -q 4 -t 6 -m 65536 $IP_A"
	wait $starter
	result $? "$name: it was under way"
	faults_off
}

# One request may meet eight failures in a row and then rightly ends: at 5 per cent, where each train needs some ten
# allocations, once in some hundred runs.
traffic "no memory at once" atomic 2 failslab fail_page_alloc
traffic "packets that move" all 30 fail_skb_realloc

works "afterwards"
unharmed "$before"
