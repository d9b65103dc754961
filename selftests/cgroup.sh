#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Cgroups: what a group may have of the device (the RDMA controller), that all of it is given back, processes
# whose memory is at its limit, and whom memory is charged to that the device makes for a process.
. "$(dirname "$0")/lib.sh"

TOP=/sys/fs/cgroup
GROUP=$TOP/srtest

cgroup_finish() {
	rmdir "$GROUP" "$TOP"/srtest_tight "$TOP"/srtest_charged 2>/dev/null
	finish
}
trap cgroup_finish EXIT

grep -qsw rdma $TOP/cgroup.controllers || {
	ktap_skip "cgroup" "no rdma controller in cgroup2"
	ktap_end
}
devices_up 9000
echo +rdma >$TOP/cgroup.subtree_control
mkdir $GROUP || bail "cannot make a cgroup"

# in_group COMMAND... : on host A
in_group() { bash -c 'echo $$ >"$0/cgroup.procs" && exec ip netns exec "$@"' "$GROUP" "$A" "$@"; }

# allow HANDLES OBJECTS
allow() { echo "$DEV_A hca_handle=$1 hca_object=$2" >$GROUP/rdma.max; }

used() { awk -v dev="$DEV_A" '$1 == dev { print $2, $3 }' $GROUP/rdma.current; }

opens() { in_group ibv_devinfo -d "$DEV_A"; }

cannot_open() { ! opens; }

pingpong() { # both ends on host A
	in_group timeout 20 ibv_rc_pingpong -d "$DEV_A" -g "$GID_A" -n 100 >"$TMP/server" 2>&1 &
	sleep 1
	in_group timeout 20 ibv_rc_pingpong -d "$DEV_A" -g "$GID_A" -n 100 "$IP_A" >"$TMP/client" 2>&1
	local status=$?
	[ "$status" -eq 0 ] || kill $! 2>/dev/null
	wait $!
	return "$status"
}

no_pingpong() { ! pingpong; }

none_used() { ! used | grep -q '=[1-9]'; }

GID_A=$(gid_index $A $DEV_A $IP_A)
allow 0 100 || bail "the device is not known to the controller"
# A context that is not made leaves ib_uverbs with a reference to its task for ever (Documentation/security.md), and a kernel that looks
# for what is lost would say so of whoever was refused
if [ -e /sys/kernel/debug/kmemleak ]; then
	ktap_skip "no handle allowed: the device cannot be opened" "this kernel tells of what ib_uverbs forgets then"
else
	check "no handle allowed: the device cannot be opened" 10 cannot_open
fi
allow 4 2
check "opened with two handles allowed" 10 opens
check "too few objects: no queue pair" 40 no_pingpong
allow 4 max
check "enough: it works" 40 pingpong
wait_for 5 none_used
result $? "everything was given back ($(used))"

# --- memory at its limit -----------------------------------------------------------------------------------------

VERIFY=$(program verify) || bail "verify was not built"
TIGHT=$TOP/srtest_tight
if ! echo +memory >$TOP/cgroup.subtree_control 2>/dev/null || ! mkdir $TIGHT; then
	ktap_skip "memory at its limit" "no memory controller in cgroup2"
	ktap_end
fi

# had EVENT : how often it has happened to the group
had() { awk -v event="$1" '$1 == event { print $2 }' $TIGHT/memory.events; }

# tight SIZE HOW : a client in a group with so much memory, against a server with as much as it wants. However it ends
# (out of memory, killed for it, or well), it ends, no byte is wrong, and nothing is left of it. HOW it must fare: "roomy",
# it works; "short", it meets the limit, or the size shows nothing; "any", whichever.
tight() {
	local size=$1 how=$2 server status start=$SECONDS max oom
	echo "$size" >$TIGHT/memory.max
	echo 0 >$TIGHT/memory.swap.max 2>/dev/null
	max=$(had max) oom=$(had oom)
	ip netns exec $A timeout $((60 * SLOW)) "$VERIFY" -d $DEV_A -i $IP_A >"$TMP/server" 2>&1 &
	server=$!
	wait_for 5 listening $A
	# shellcheck disable=SC2016 # for the inner shell
	timeout -k 2 $((40 * SLOW)) bash -c 'echo $$ >"$0/cgroup.procs" && exec ip netns exec "$@"' $TIGHT $B \
		"$VERIFY" -d $DEV_B -i $IP_B -q 32 -t 3 $IP_A >"$TMP/client" 2>&1
	status=$?
	max=$(($(had max) - max)) oom=$(($(had oom) - oom))
	note "$size: status $status after $((SECONDS - start)) s: $(tail -n 1 "$TMP/client" | cut -c 1-80); limit met $max times, out of memory $oom times"
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	# 137: killed, by the kernel at once or by timeout at its end
	[ $status -ne 124 ] && [ $((SECONDS - start)) -lt $((40 * SLOW)) ]
	result $? "memory.max $size: the process comes to its end"
	# 1: what verify says of a wrong byte or completion
	[ $status -ne 1 ] && ! grep -qi wrong "$TMP/client" "$TMP/server"
	result $? "memory.max $size: no byte is wrong"
	case $how in
	roomy)
		[ $status -eq 0 ]
		result $? "memory.max $size: it is enough, and all data is right"
		;;
	short)
		[ $((max + oom)) -gt 0 ]
		result $? "memory.max $size: the limit was met"
		;;
	esac
	wait_for 10 eval '! rdma resource show qp | grep "link '$DEV_B'/" | grep -q "comm verify"'
	result $? "memory.max $size: no queue pair is left"
}

tight 256M roomy
for size in 64M 16M; do tight $size any; done
for size in 4M 1M; do tight $size short; done
echo max >$TIGHT/memory.max
# What the kernel holds for somebody who is gone would stay charged.
# shellcheck disable=SC2016 # looked at each time
wait_for 10 eval '[ "$(cat $TIGHT/memory.current)" -lt 2000000 ]'
result $? "nothing stays charged ($(cat $TIGHT/memory.current) bytes: files)"
rmdir $TIGHT
result $? "the group can be removed"

# --- page tables that the device makes ------------------------------------------------------------------------------

CHARGE=$(program charge) || bail "charge was not built"
CHARGED=$TOP/srtest_charged

# KiB of page tables that a group has
group_tables() { awk '$1 == "pagetables" { print int($2 / 1024) }' $CHARGED/memory.stat; }

# A process that has the device make some for it: they are its own, and not of whoever serves the device. The kernel
# adds such figures up every two seconds.
device_tables() {
	local own got pid in
	mkdir $CHARGED && mkfifo "$TMP/stdin" || return
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'echo $$ >"$0/cgroup.procs" && exec ip netns exec "$@"' $CHARGED $A "$CHARGE" -d $DEV_A -i $IP_A \
		<"$TMP/stdin" >"$TMP/charge" 2>&1 &
	pid=$!
	exec {in}>"$TMP/stdin"
	wait_for 60 eval "grep -q '^tables' '$TMP/charge' || ! kill -0 $pid"
	own=$(awk '$1 == "tables" { print $2 }' "$TMP/charge")
	wait_for 6 eval "[ \$(group_tables) -ge ${own:-1000000} ]"
	got=$(group_tables)
	note "KiB of page tables: ${own:-none: $(tail -n 1 "$TMP/charge")} of the process, $got of its group"
	exec {in}>&-
	wait $pid && rmdir $CHARGED && [ "$got" -ge "$own" ]
}
device_tables
result $? "pages on demand: tables are charged to whose they are"
pair "and everybody else can talk" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"
ktap_end
