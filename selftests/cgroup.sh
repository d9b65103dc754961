#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The RDMA controller of cgroups: what a group may have of the device, and that all of it is given back.
. "$(dirname "$0")/lib.sh"

TOP=/sys/fs/cgroup
GROUP=$TOP/srtest

cgroup_finish() {
	rmdir $GROUP 2>/dev/null
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
in_group() { bash -c 'echo $$ >"$0/cgroup.procs" && exec ip netns exec "$@"' $GROUP $A "$@"; }

# allow HANDLES OBJECTS
allow() { echo "$DEV_A hca_handle=$1 hca_object=$2" >$GROUP/rdma.max; }

used() { awk -v dev="$DEV_A" '$1 == dev { print $2, $3 }' $GROUP/rdma.current; }

opens() { in_group ibv_devinfo -d $DEV_A; }

cannot_open() { ! opens; }

pingpong() { # both ends on host A
	in_group timeout 20 ibv_rc_pingpong -d $DEV_A -g "$GID_A" -n 100 >"$TMP/server" 2>&1 &
	sleep 1
	in_group timeout 20 ibv_rc_pingpong -d $DEV_A -g "$GID_A" -n 100 $IP_A >"$TMP/client" 2>&1
	local status=$?
	[ $status -eq 0 ] || kill $! 2>/dev/null
	wait $!
	return $status
}

no_pingpong() { ! pingpong; }

none_used() { ! used | grep -q '=[1-9]'; }

GID_A=$(gid_index $A $DEV_A $IP_A)
allow 0 100 || bail "the device is not known to the controller"
check "no handle allowed: the device cannot be opened" 10 cannot_open
allow 4 2
check "opened with two handles allowed" 10 opens
check "too few objects: no queue pair" 40 no_pingpong
allow 4 max
check "enough: it works" 40 pingpong
wait_for 5 none_used
result $? "everything was given back ($(used))"
ktap_end
