#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Memory on demand whose pages never come: a userfaultfd that nobody reads, a file system in user space that does not
# answer. Nobody waits for them but who wants them: not deregistration, not a process that is killed, not the device,
# its netdev or its namespace, not what an administrator asks of them, and not another process with memory on demand.
# The same of memory that is being pinned. And advice of which there is no end, and a process that is always about to lose memory.
. "$(dirname "$0")/lib.sh"
. "$SELF/exclusive.sh"

STUCK=$(program stuck) || bail "stuck was not built"
HOLD=srtest_hold
modprobe -q fuse
exec 2>"$TMP/jobs"

ip netns del $HOLD 2>/dev/null
host_ns $HOLD

# let_go : whoever does not answer dies, and what waited for it goes on
let_go() {
	[ -n "${server:-}" ] && kill -9 "$server"
	[ -n "${folder:-}" ] && umount -l "$folder" && rmdir "$folder"
	server='' folder=''
	return 0
}
trap 'let_go; ip netns del $HOLD; finish' EXIT

# hold HOW : a process that is stuck: $holder, $server, $folder; in the namespace $WHERE
WHERE=$HOLD
hold() {
	rm -f "$TMP/hold"
	: >"$TMP/hold"
	ip netns exec $WHERE "$STUCK" -d $DEV_A -i $IP_A "$1" hold >"$TMP/hold" 2>&1 &
	holder=$!
	wait_for 20 grep -q '^stuck' "$TMP/hold" || { notes <"$TMP/hold"; return 1; }
	read -r _ server folder < <(grep '^stuck' "$TMP/hold")
}

# gone : what the process had is no more
gone() { ! in_ns "$WHERE" rdma resource show mr 2>/dev/null | grep -q "dev $DEV_A "; }

by_kill() { kill -9 "$holder"; }
by_link() { limit 20 ip netns exec "$A" rdma link del "$DEV_A"; }
by_netdev() { limit 10 ip -n "$A" link del veth0; }
by_namespace() { limit 10 ip netns del "$A"; }

# vanishes HOW WAY : the process, or its device, while it is stuck
vanishes() {
	local how=$1 way=$2 status start=$SECONDS
	if ! hold "$how"; then
		ktap_fail "$how: $way: it was not stuck"
		return
	fi
	"by_$way"
	status=$?
	result $status "$how: $way ($((SECONDS - start)) s)"
	kill -9 $holder
	wait_for 5 eval "! kill -0 $holder"
	result $? "$how: $way: the process ends"
	# only a wait that cannot be broken off keeps what a dead process had, until it is answered
	if [[ $how != single ]]; then
		wait_for 10 gone
		result $? "$how: $way: nothing is left of it, and it was not answered"
	elif [ "$way" = link ]; then
		driver_unload
		[ $? -eq 1 ] && driver_loaded
		result $? "$how: $way: the module stays as long as a page is awaited, without anybody waiting for that"
	fi
	let_go
	wait_for 10 gone
	result $? "$how: $way: nothing is left of it"
	devices_up 9000
}

# goes_on HOW : for everybody else, while the process is stuck
goes_on() {
	local how=$1
	if ! hold "$how"; then
		ktap_fail "$how: an administrator: it was not stuck"
		return
	fi
	administered "$how"
	kill -0 $holder
	result $? "$how: and the process is still stuck"
	kill -9 $holder
	let_go
	wait_for 10 gone
	result $? "$how: nothing is left of it"
	devices_up 9000
}

# goes_elsewhere HOW : its device, to another namespace, while the process is stuck
goes_elsewhere() {
	local how=$1
	if ! hold "$how"; then
		ktap_fail "$how: a device that moves: it was not stuck"
		return
	fi
	moves "$how"
	kill -0 $holder
	result $? "$how: and its process is still there"
	kill -9 $holder
	wait_for 5 eval "! kill -0 $holder"
	result $? "$how: a device that moved: the process ends"
	# as in vanishes()
	if [ "$how" != single ]; then
		wait_for 10 gone
		result $? "$how: a device that moved: nothing is left of it, and it was not answered"
	fi
	let_go
	wait_for 10 gone
	result $? "$how: a device that moved: nothing is left of it"
}

# Only what is in no other namespace can move
exclusive() {
	local how
	hosts_down
	ip netns del $HOLD
	WHERE=$A
	for how in uffd fuse single; do
		if exclusive_up; then
			goes_elsewhere $how
		else
			ktap_skip "$how: a device that moves" "there are other namespaces"
		fi
	done
	exclusive_down
	WHERE=$HOLD
	host_ns $HOLD
}

devices_up 9000
for how in uffd fuse single; do
	program_verdicts "$how" 120 in_ns $A "$STUCK" -d $DEV_A -i $IP_A $how
	goes_on $how
	for way in kill link netdev namespace; do
		vanishes $how $way
	done
done
# a registration that waits for its pages: it ends with its process, or when the device is to go
for how in uffd fuse single half; do
	goes_on pinned-$how
	for way in kill link netdev namespace; do
		vanishes pinned-$how $way
	done
done
# a call that would go on for hours: whoever ends it waits for some seconds at most
for how in empty present; do
	for way in kill link; do
		vanishes $how $way
	done
done
# threads that unmap memory in turns: the kernel lets go of no region meanwhile
for way in kill link netdev namespace; do
	vanishes lost $way
done
exclusive
hosts_down
wait_for 10 driver_unload
result $? "the module can be removed"
ktap_end
