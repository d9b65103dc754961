#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# faults.sh : a kernel that runs out of memory, or that cannot read or write a process's: at every place of every
# call in turn, of insmod and rmmod, too, and at random under traffic and in other tests. Nothing is left behind, nothing hangs, nothing complains, and afterwards
# all of it works. Needs CONFIG_FAULT_INJECTION with its debugfs (the sanitizer kernel has it).
#
# MOST=N (60; in a full run all, of "rdma link add" 3000): places of a call that are tried
# VICTIMS=N (3; 30): pairs that cannot read or write their memory, and namespaces
# TESTS=N (1; 20): how often each of other tests' programs runs, some of whose calls fail   SEED=N
. "$(dirname "$0")/lib.sh"

FAULTS=$(program faults) && FAILING=$(program failing) && VERIFY=$(program verify) && VERIFY_UD=$(program verify_ud) &&
	TORRENT=$(program torrent) || bail "the test programs were not built"
amount MOST 60 3000
amount VICTIMS 3 30
amount TESTS 1 20
seeded MOST VICTIMS TESTS
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

# Of a full run each call is tried at all of its places
patience=$([ "$MOST" -gt 60 ] && echo 1500 || echo 400)
program_verdicts "calls" "$patience" "$FAULTS" -n "$MOST" -s "$SEED" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
wait_for 10 idle
result $? "calls: nothing is left"
works "calls: others can talk"

ip -n $A link add fault0 type dummy && ip -n $A link set fault0 up && ip -n $A addr add 10.98.7.1/24 dev fault0
program_verdicts "links" "$patience" ip netns exec $A "$FAULTS" -n "$MOST" -s "$SEED" -l srt_fault -N fault0
! ip -n $A link show fault0 >/dev/null 2>&1 || ip -n $A link del fault0

# --- at random, under traffic ----------------------------------------------------------------------------------

# connected N : so many queue pairs of programs that compare data
connected() { [ "$(rdma resource show qp | grep 'comm verify' | grep -c 'state RTS')" -ge "$1" ]; }

# traffic NAME QPS SERVER CLIENT FAULTS... : the faults begin when it is under way: without memory a process may well fail to open
# its connections.
traffic() {
	local name=$1 qps=$2 server=$3 client=$4 starter
	shift 4
	{ wait_for 60 connected "$qps" && faults_on "$@"; } &
	starter=$!
	pair "$name" 90 "$server" "$client"
	wait $starter
	result $? "$name: it was under way"
	faults_off
}

# streams NAME FAULTS... : every byte is compared, and what is lost is sent again
streams() {
	traffic "$1" 8 "$VERIFY -d $DEV_A -i $IP_A -q 4" "$VERIFY -d $DEV_B -i $IP_B -q 4 -t 6 -m 65536 $IP_A" "${@:2}"
}

# datagrams NAME FAULTS... : what is lost is lost, and what comes is right
datagrams() {
	traffic "$1" 2 "$VERIFY_UD -l -d $DEV_A -i $IP_A -n 3000" "$VERIFY_UD -l -d $DEV_B -i $IP_B -n 3000 $IP_A" "${@:2}"
}

# frames NAME FAULTS... : raw packets that are cut, and copies for 24 flows
frames() {
	faults_on "${@:2}"
	limit 60 "$TORRENT" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B -f 24 -m 1000 -l 40000 -t 3 >"$TMP/frames" 2>&1
	result $? "$1"
	faults_off
	notes 2 <"$TMP/frames"
}

# connections NAME FAULTS... : of rdma_cm, one after the other. One that finds no memory may fail, or wait for an event that ib_uverbs
# had no memory for, until it is killed; but not all of them, and nothing stays.
connections() {
	local i made=0 status=0
	faults_on "${@:2}"
	for ((i = 0; i < 8 * VICTIMS; i++)); do
		run_pair_once 5 $A "rping -s -a $IP_A -C 3" $B "rping -c -a $IP_A -C 3" >/dev/null && made=$((made + 1))
	done
	faults_off
	note "$made of $i connections were made"
	wait_for 10 idle || status=1
	[ $made -gt 0 ] || status=1
	result $status "$1"
}

# One request may meet eight failures in a row and then rightly ends: at 5 per cent, where each train needs some ten
# allocations, once in some hundred runs.
streams "no memory at once" atomic 2 failslab fail_page_alloc
streams "packets that move" all 30 fail_skb_realloc
datagrams "datagrams, no memory at once" atomic 2 failslab fail_page_alloc
datagrams "datagrams, packets that move" all 30 fail_skb_realloc
frames "frames, no memory at once" atomic 2 failslab fail_page_alloc
frames "frames, packets that move" all 30 fail_skb_realloc
connections "connections, no memory at once" atomic 2 failslab fail_page_alloc
works "after that"

# --- memory of a process that cannot be reached -----------------------------------------------------------------

# count_met KIND : its faults since times=$MANY, which counts them down, are some of met
MANY=1000000
count_met() { met=$((met + MANY - $(cat "$kinds/$1/times"))); }

# make_fail PID : all of its threads
make_fail() { for task in /proc/"$1"/task/*; do echo 1 >"$task/make-it-fail"; done; }

# victims : two processes whose memory the kernel cannot reach now and then, from the moment when they talk. Any call of theirs
# may fail, so they may end as they like, but soon, and nothing of them stays.
victims() {
	local server client status=0
	knob fail_usercopy task-filter=Y
	ip netns exec $A "$VERIFY" -p 18600 -d $DEV_A -i $IP_A -q 4 >"$TMP/victim.a" 2>&1 &
	server=$!
	wait_for 10 eval "in_ns $A ss -ltn | grep -q :18600" || status=1
	ip netns exec $B "$VERIFY" -p 18600 -d $DEV_B -i $IP_B -q 4 -t 4 -m 65536 $IP_A >"$TMP/victim.b" 2>&1 &
	client=$!
	wait_for 60 connected 8 || status=1
	knob fail_usercopy times=$MANY
	make_fail $server && make_fail $client && knob fail_usercopy probability=$((1 + RANDOM % 10))
	wait_for 30 eval "! kill -0 $client"
	count_met fail_usercopy
	knob fail_usercopy probability=0 task-filter=N times=-1
	kill -9 $client $server
	wait_for 10 idle || status=1
	return $status
} 2>/dev/null

met=0
for ((i = 0; i < VICTIMS; i++)); do
	victims || break
done
[ "$i" -eq "$VICTIMS" ] && [ $met -gt 0 ]
result $? "memory of processes that cannot be reached, $VICTIMS times under traffic ($met faults): nothing is left"
works "after memory that could not be reached"

# --- other tests -----------------------------------------------------------------------------------------------

# stumbles PROGRAM : one of another test, some of whose calls fail (failing.c). What it says of a kernel that has memory counts for
# nothing here, and it may wait for what does not come; but it can be killed, and nothing of it stays. Whether many calls fail,
# so that it does not come far, or few, is chosen.
stumbles() {
	local one_in=$((16 << RANDOM % 6)) patient=5 file pid status
	[ "$SET" = quick ] || patient=40
	file=$(program "$1") || return
	: >"$TMP/tally"
	LD_PRELOAD=$FAILING FAILING_ONE_IN=$one_in FAILING_SEED=$RANDOM FAILING_TALLY=$TMP/tally "$file" \
		-d $DEV_A -i $IP_A -D $DEV_B -I $IP_B >"$TMP/stumbles" 2>&1 &
	pid=$!
	wait_for "$patient" eval "! kill -0 $pid" || kill -9 $pid
	wait_for 10 eval "! kill -0 $pid" || return
	wait $pid
	status=$?
	note "$1: $(stat -c %s "$TMP/tally") faults, one call in $one_in: status $status: $(tail -n 1 "$TMP/stumbles" | cut -c 1-100)"
	met=$((met + $(stat -c %s "$TMP/tally")))
	wait_for 10 idle || { note "left over: $(rdma resource show qp; rdma resource show mr; rdma resource show cq)"; return 1; }
} 2>/dev/null

# By their sources, which "manifest.sh files" looks for
for test in verbs.c qpstate.c memory.c cq.c odp.c transports.c dm.c dmabuf.c tm.c raw.c; do
	test=${test%.c} met=0
	for ((i = 0; i < TESTS; i++)); do
		stumbles "$test" || break
	done
	# of a single run none may have come so far
	[ "$i" -eq "$TESTS" ] && [ $((met + (TESTS < 5))) -gt 0 ]
	result $? "$test, some of whose calls fail, $TESTS times ($met faults): it ends, and nothing is left"
done
works "after other tests whose calls failed"

# --- a namespace that ends ------------------------------------------------------------------------------------

# workers_fail 0|1 : the kernel's, and nobody else
workers_fail() {
	local task
	while read -r task; do
		echo "$1" >"${task%/comm}/make-it-fail"
	done 2>/dev/null < <(grep -ls '^kworker' /proc/[0-9]*/comm)
	knob failslab task-filter="$([ "$1" = 1 ] && echo Y || echo N)"
	knob fail_page_alloc task-filter="$([ "$1" = 1 ] && echo Y || echo N)"
}

# With it go the netdev and the device, in a worker of the kernel's
namespace_ends() {
	local status
	ip netns add srt_fault_ns && ip -n srt_fault_ns link add fault1 type dummy && ip -n srt_fault_ns link set fault1 up &&
		ip -n srt_fault_ns addr add 10.98.8.1/24 dev fault1 &&
		ip netns exec srt_fault_ns rdma link add srt_fault1 type sroce netdev fault1 || return
	workers_fail 1
	knob failslab times=$MANY
	# Seldom: of what keeps watch over timers and work, sixteen pieces of memory have to come in a row, or it ends its watch
	faults_on all $((1 + RANDOM % 3)) failslab fail_page_alloc
	ip netns del srt_fault_ns
	wait_for 20 eval "! [ -e /sys/class/infiniband/srt_fault1 ]"
	status=$?
	count_met failslab
	faults_off
	workers_fail 0
	return $status
}
met=0
for ((i = 0; i < VICTIMS; i++)); do
	namespace_ends || break
done
[ "$i" -eq "$VICTIMS" ] && [ $met -gt 0 ]
result $? "a namespace ends without memory, $VICTIMS times ($met faults), and its device goes"

works "afterwards"

# --- the module --------------------------------------------------------------------------------------------------

# The file of the module, if it is one that a program can load by itself
module_path() {
	local path=${KO:-}
	[ -n "$path" ] || path=$(modinfo -n "$(driver_module)" 2>/dev/null)
	[[ $path == *.ko ]] && echo "$path"
}

# comes_and_goes FILE : with faults at the places of insmod and rmmod. What the kernel allocates for a module complains loudly when it
# does not get it (warn_alloc()), which is no fault of anybody's. So what is below an error is not printed meanwhile, and all of
# it is looked at here.
comes_and_goes() {
	local level follower places=$MOST
	# it takes long to come
	[ "$SET" = full ] || places=$((MOST / 4 + 2))
	level=$(cut -f 1 /proc/sys/kernel/printk)
	dmesg --follow-new >"$TMP/kernel" 2>&1 &
	follower=$!
	dmesg --console-level 4
	program_verdicts "module" "$patience" "$FAULTS" -n "$places" -s "$SEED" -m "$1"
	sleep 1
	dmesg --console-level "$level"
	kill $follower
	wait $follower 2>/dev/null
	note "$(grep -c 'allocation\|vmalloc' "$TMP/kernel") lines about memory that a module did not get"
	! splats_in "$TMP/kernel" | notes | grep .
	result $? "module: the kernel has nothing else to say"
}

if path=$(module_path); then
	hosts_down
	driver_unload
	comes_and_goes "$path"
	driver_load
	devices_up 9000
	works "after a module that found no memory"
else
	ktap_skip "the module" "no file of it that can be loaded as it is"
fi

unharmed "$before"
