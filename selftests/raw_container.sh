#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Raw packets in a container: whoever has CAP_NET_RAW in the user namespace to which the netdev's network namespace belongs may
# have them, and nobody else, whatever he may do elsewhere. Each device is for one network namespace (exclusive mode).
. "$(dirname "$0")/lib.sh"
. "$SELF/exclusive.sh"
C=srtest_c

[ "$DRIVER" = sroce ] || { ktap_skip "raw packets in a container" "not with $DRIVER"; ktap_end; }
splats=$(splats)
may=$(program raw_may) || bail "raw_may was not built"

clean_up() {
	[ -z "${container:-}" ] || kill -9 "$container" 2>/dev/null
	ip netns del "$C" 2>/dev/null
	finish
}
trap clean_up EXIT

# container_up : a process that has user, mount and network namespaces of its own, whose root it is; that of the network is called
# $C outside, too
container_up() {
	unshare --user --map-root-user --net --mount sh -c 'mount -t sysfs none /sys && echo ready; exec sleep 3600' >"$TMP/container" 2>&1 &
	container=$!
	wait_for 10 grep -q ready "$TMP/container" && ip netns attach $C $container && ip -n $C link set lo up
}
# in_container COMMAND... : as its root
in_container() { nsenter --target "$container" --user --net --mount --preserve-credentials "$@"; }

# may NAME NAMESPACE OPTION... : raw_may in that network namespace, as root of the machine
may() { program_verdicts "$1" 30 in_ns "$2" "$may" -d $DEV_A -i $IP_A "${@:3}"; }

# netdev_to FROM TO : with its address, which a move loses
netdev_to() {
	ip -n "$1" link set veth0 netns "$2" && ip -n "$2" link set veth0 up && ip -n "$2" addr add $IP_A/24 dev veth0
}

exclusive_up || { ktap_skip "raw packets in a container" "there are other namespaces"; ktap_end; }
container_up || bail "no container: $(tail -n 1 "$TMP/container")"

may "root of the machine" $A
may "without CAP_NET_RAW" $A -c -r
may "root of a container, and the netdev is not there" $A -u $container -r

in_ns $A rdma dev set $DEV_A netns $C && netdev_to $A $C && wait_for 20 has_all_gids $C $DEV_A veth0
result $? "device and netdev move to the container" || bail "$(in_ns $C rdma link)"
may "root of the machine, and the netdev is in a container" $C
may "root of the container" $C -u $container
may "root of the container, without CAP_NET_RAW" $C -u $container -c -r
may "root of a container in the container" $C -u $container -n -r
program_verdicts "a process of the container" 30 in_container "$may" -d $DEV_A -i $IP_A
program_verdicts "a process of the container, without CAP_NET_RAW later" 30 in_container "$may" -d $DEV_A -i $IP_A -c -r

# pings BYTES : from host B to where the netdev is
pings() { on_b ping -q -c 3 -i 0.2 -W 1 -s "$1" "$IP_A"; }

# of the type that raw_may sends
on_b tcpdump -l --immediate-mode -n -i veth0 ether proto 0x88b5 >"$TMP/seen" 2>"$TMP/tcpdump" &
tcpdump=$!
wait_for 20 grep -q '^listening' "$TMP/tcpdump"
sent_are() { [ "$(grep -c 0x88b5 "$TMP/seen")" -eq "$1" ]; }

mkfifo "$TMP/go"
exec 9<>"$TMP/go"
limit 60 in_ns $C "$may" -d $DEV_A -i $IP_A -u $container -m <"$TMP/go" >"$TMP/verdicts" 2>&1 &
pid=$!
wait_for 20 grep -q '^# listening' "$TMP/verdicts" && check "echo requests" 20 pings 555
wait_for 30 grep -q '^# ready' "$TMP/verdicts"
result $? "a sniffer in the container hears them"
wait_for 10 sent_are 1
result $? "what it sends leaves"
netdev_to $C $A
result $? "the netdev moves away"
check "echo requests" 20 pings 777
echo >&9
wait $pid
verdicts "a netdev that moves away" "$TMP/verdicts"
tail -n 1 "$TMP/verdicts" | grep -q '^0 wrong$'
result $? "a netdev that moves away: came to its end"
tail -n 1 "$TMP/verdicts" | notes
# To where it was sent what comes behind it has come
check "echo requests" 20 pings 100 && sleep 1 && sent_are 1
result $? "what it sends does not leave any more"
kill $tcpdump
wait $tcpdump

link_del $C $DEV_A
kill -9 $container
wait $container 2>/dev/null
container=
ip netns del $C
exclusive_down
unharmed "$splats"
