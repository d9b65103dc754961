#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The device as an administrator sees it: made, renamed, followed through changes of its netdev, looked
# at with the rdma tool, and removed in every order.
. "$(dirname "$0")/lib.sh"

# expect NAME COMMAND... ; refuse NAME COMMAND... : a command succeeds, or is refused with a message.
# (A command that does not exist, hangs or crashes is not refused: statuses from 124 on.)
expect() { check "$1" 20 "${@:2}"; }
refuse() {
	local name=$1 status
	shift
	limit 20 "$@" >"$TMP/out" 2>&1
	status=$?
	notes 1 <"$TMP/out"
	[ $status -gt 0 ] && [ $status -lt 124 ] && [ -s "$TMP/out" ]
	result $? "$name"
}

# eventually NAME COMMAND... : within ten seconds
eventually() {
	local name=$1
	shift
	wait_for 10 "$@"
	result $? "$name"
}

port_of() { echo "/sys/class/infiniband/$2/ports/1/$3"; }
sysfs() { in_ns "$1" cat "$(port_of "$@")"; }
exists() { in_ns "${2:-$A}" rdma link show "$1/1"; }
gone() { ! exists "$@"; }
has_gid() { gid_index "$1" "$2" "$3"; }
lacks_gid() { ! gid_table "$1" "$2" | grep -q "$(gid_of "$3")"; }
active_mtu() { in_ns "$A" ibv_devinfo -d "$1" | awk '/active_mtu/ { print $2 }'; }
is_mtu() { [ "$(active_mtu "$1")" = "$2" ]; }
is_state() { sysfs "$A" "$1" state | grep -q "$2"; }
port_4791_used() { in_ns "$1" grep -qi ':12B7 ' /proc/net/udp /proc/net/udp6; }
port_4791_free() { ! port_4791_used "$1"; }
pingpong() {
	run_pair 20 $A "ibv_rc_pingpong -d $1 -g $(gid_index $A "$1" $IP_A) -n 20 -c" \
		$B "ibv_rc_pingpong -d $2 -g $(gid_index $B "$2" $IP_B) -n 20 -c $IP_A"
}

driver_load
hosts_up 9000

# --- names ---------------------------------------------------------------------------------------------

for name in x rxe7 mlx5_0 "sroce-0.1" a234567890123456789012345678901234567890123456789012345678901; do
	expect "a device called $name" link_add $A "$name"
	expect "libibverbs finds $name" in_ns $A ibv_devinfo -d "$name"
	expect "remove $name" link_del $A "$name"
	gone "$name"
	result $? "$name is gone"
done
expect "a device for the next tests" link_add $A $DEV_A
refuse "the same name twice" in_ns $A rdma link add $DEV_A type "$DRIVER" netdev veth0
refuse "the name of another netdev's device" in_ns $B rdma link add $DEV_A type "$DRIVER" netdev veth0
[ "$DRIVER" != sroce ] || grep -q "File exists" "$TMP/out"
result $? "it is said that the name exists"
refuse "a second device on one netdev" in_ns $A rdma link add ${DEV_A}x type "$DRIVER" netdev veth0
refuse "a netdev that is not there" in_ns $A rdma link add ${DEV_A}x type "$DRIVER" netdev nothere
expect "rename" in_ns $A rdma dev set $DEV_A name renamed
expect "libibverbs finds it renamed" in_ns $A ibv_devinfo -d renamed
expect "rename back" in_ns $A rdma dev set renamed name $DEV_A
exists $DEV_A
result $? "the first device is still there"

# --- what is on show -------------------------------------------------------------------------------------

in_ns $A rdma link show $DEV_A/1 >"$TMP/out"
notes <"$TMP/out"
grep -q 'state ACTIVE physical_state LINK_UP netdev veth0' "$TMP/out"
result $? "rdma link: active, link up, netdev veth0"
in_ns $A ibv_devinfo -v -d $DEV_A >"$TMP/out"
for field in 'link_layer: *Ethernet' 'state: *PORT_ACTIVE' 'active_mtu: *4096' 'phys_port_cnt: *1' \
	'node_guid: *[0-9a-f:]*[1-9a-f]' 'max_qp: *[1-9]' 'max_mr_size: *0x[1-9a-f]' 'max_sge: *32' 'max_qp_rd_atom: *128' \
	'GID\[.*fe80' 'GID\[.*::ffff:10.98.0.1, RoCE v2' 'GID\[.*fd98::1, RoCE v2'; do
	grep -qE "$(tr -d ' ' <<<"$field")" <(tr -d ' \t' <"$TMP/out" | sed 's/,RoCE/, RoCE/' | tr -d ' ')
	result $? "ibv_devinfo: $field"
done
for attr in state phys_state rate link_layer; do
	note "$attr: $(sysfs $A $DEV_A $attr)"
	[ -n "$(sysfs $A $DEV_A $attr)" ]
	result $? "sysfs: $attr is filled (node_exporter needs it)"
done

counters $A $DEV_A >"$TMP/counters"
if [ "$DRIVER" = rxe ]; then
	names="sent_pkts rcvd_pkts duplicate_request send_err"
else
	# the 30 names that node_exporter reads, but for those of features to come (DC, CNP, adaptive)
	names="duplicate_request implied_nak_seq_err local_ack_timeout_err out_of_buffer out_of_sequence
	packet_seq_err req_cqe_error req_cqe_flush_error req_remote_access_errors req_remote_invalid_request
	resp_cqe_error resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err
	rx_atomic_requests rx_icrc_encapsulated rx_read_requests rx_write_requests"
fi
for name in $names; do
	grep -q "^$name " "$TMP/counters"
	result $? "rdma statistic: $name"
done

# --- one that is in use ----------------------------------------------------------------------------------

expect "a device on host B" link_add $B $DEV_B
pingpong $DEV_A $DEV_B
result $? "the two talk"
ip netns exec $A ibv_rc_pingpong -d $DEV_A -g "$(gid_index $A $DEV_A $IP_A)" >/dev/null 2>&1 &
victim=$!
eventually "rdma resource: a queue pair with its process" \
	eval "in_ns $A rdma resource show qp link $DEV_A/1 | grep -q 'type RC.*comm ibv_rc_pingpong'"
for object in pd cq mr; do
	in_ns $A rdma resource show $object dev $DEV_A >"$TMP/out"
	grep -q "comm ibv_rc_pingpong" "$TMP/out"
	result $? "rdma resource: its $object"
	notes 1 <"$TMP/out"
done
in_ns $A rdma resource show qp link $DEV_A/1 type RC | notes 1
kill -9 $victim
wait $victim 2>/dev/null
eventually "rdma resource: nothing of it is left after its death" \
	eval "! in_ns $A rdma resource show qp link $DEV_A/1 | grep -q 'type RC'"

# --- changes of the netdev -------------------------------------------------------------------------------

for pair in 9000:4096 4192:4096 4191:2048 2144:2048 2143:1024 1500:1024 1120:1024 1119:512 9000:4096; do
	mtu=${pair%:*}
	if [ "$DRIVER" = rxe ] && [ "$((mtu % 2))" -eq 1 ]; then
		ktap_skip "netdev MTU $mtu" "rxe subtracts 80, not 96"
		continue
	fi
	ip -n $A link set veth0 mtu "$mtu"
	eventually "netdev MTU $mtu: path MTU ${pair#*:}" is_mtu $DEV_A "${pair#*:}"
done
ip -n $A addr add 10.98.1.1/24 dev veth0
eventually "new IPv4 address: new GID" has_gid $A $DEV_A 10.98.1.1
ip -n $A addr del 10.98.1.1/24 dev veth0
eventually "IPv4 address removed: GID removed" lacks_gid $A $DEV_A 10.98.1.1
ip -n $A addr add fd98:1::1/64 dev veth0 nodad
eventually "new IPv6 address: new GID" has_gid $A $DEV_A fd98:1::1
ip -n $A addr del fd98:1::1/64 dev veth0
eventually "IPv6 address removed: GID removed" lacks_gid $A $DEV_A fd98:1::1
ip -n $B link set veth0 down
eventually "carrier lost: port down" is_state $DEV_A DOWN
ip -n $B link set veth0 up
eventually "carrier back: port active" is_state $DEV_A ACTIVE
ip -n $A link set veth0 down
eventually "netdev down: port down" is_state $DEV_A DOWN
ip -n $A link set veth0 up
eventually "netdev up: port active" is_state $DEV_A ACTIVE
ip -n $A link set veth0 down
ip -n $A link set veth0 address 02:00:00:98:00:aa
ip -n $A link set veth0 up
eventually "hardware address changed: link-local GID follows" \
	eval "gid_table $A $DEV_A | grep -q fe80:0000:0000:0000:0000:00ff:fe98:00aa"
ip -n $A link set veth0 down
ip -n $A link set veth0 name eth7
ip -n $A link set eth7 up
eventually "netdev renamed: rdma link follows" eval "in_ns $A rdma link show $DEV_A/1 | grep -q 'netdev eth7'"
ip -n $A link set eth7 down
ip -n $A link set eth7 name veth0
ip -n $A link set veth0 up
# IPv6 addresses go away with "down"
ip -n $A addr replace fd98::1/64 dev veth0 nodad
ip -n $B addr replace fd98::2/64 dev veth0 nodad
eventually "all GIDs are back" has_all_gids $A $DEV_A veth0
eventually "all GIDs are back on host B" has_all_gids $B $DEV_B veth0
pingpong $DEV_A $DEV_B
result $? "the two talk after all of this"

# --- a netdev that comes up while the device is made -------------------------------------------------------

# how often the link was lost, which only the first namespace's sysfs tells
link_downed() { cat "/sys/class/infiniband/$DEV_A/ports/1/counters/link_downed"; }

# up_meanwhile : as soon as UDP port 4791 is taken, which is before ib_core has the device
up_meanwhile() {
	exec ip netns exec $A python3 -uc '
import fcntl, socket, struct, time
s, end = socket.socket(), time.time() + 20
print("ready")
while ":12B7 " not in open("/proc/net/udp").read() and time.time() < end:
    pass
# SIOCGIFFLAGS, SIOCSIFFLAGS with IFF_UP
flags = fcntl.ioctl(s, 0x8913, struct.pack("16sH22x", b"t0", 0))
fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"t0", struct.unpack_from("H", flags, 16)[0] | 1))'
}

# downed_once : what has come up meanwhile goes down later, and that is one time more
downed_once() {
	local before up
	ip -n $A link set t0 down
	: >"$TMP/up"
	up_meanwhile >"$TMP/up" &
	up=$!
	wait_for 10 grep -q ready "$TMP/up" && in_ns $A rdma link add $DEV_A type "$DRIVER" netdev t0 && wait $up || return
	wait_for 5 is_state $DEV_A ACTIVE || return
	before=$(link_downed)
	ip -n $A link set t0 down
	wait_for 2 eval "[ \$(link_downed) -eq $((before + 1)) ]"
}

# a netdev that has no carrier to tell of later
if [ "$DRIVER" = sroce ] && ip -n $A link add t0 type dummy; then
	link_del $A $DEV_A
	bad=0
	for ((i = 0; i < 10; i++)); do
		downed_once || bad=$((bad + 1))
		link_del $A $DEV_A
	done
	[ $bad -eq 0 ]
	result $? "a netdev that comes up while its device is made: it is noticed when it goes down ($bad of $i times not)"
	ip -n $A link del t0
	link_add $A $DEV_A
else
	ktap_skip "a netdev that comes up while its device is made" "no dummy netdev in this kernel"
fi

# --- several devices, and removal ------------------------------------------------------------------------

ip -n $A link add veth1 type veth peer name veth2
for i in 1 2; do
	ip -n $A addr add 10.98.$((i + 1)).1/24 dev veth$i
	ip -n $A link set veth$i up
	expect "one more device on veth$i" link_add $A ${DEV_A}$i veth$i
done
port_4791_used $A
result $? "UDP port 4791 is taken while there are devices"
expect "remove one of three" link_del $A ${DEV_A}1
port_4791_used $A
result $? "UDP port 4791 is still taken"
pingpong $DEV_A $DEV_B
result $? "the first device still works"
ip -n $A link del veth2
eventually "netdev removed: its device is gone" gone ${DEV_A}2
refuse "remove a device that went with its netdev" link_del $A ${DEV_A}2
pingpong $DEV_A $DEV_B
result $? "the first device works still"
expect "remove the last one" link_del $A $DEV_A
eventually "UDP port 4791 is free" port_4791_free $A
exists $DEV_B $B
result $? "the device of host B is still there"

# The port is somebody else's: no device, and nothing left behind.
ip netns exec $A python3 -c '
import socket, time
for family, address in (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, 4791))
    globals()["keep%d" % family] = s
time.sleep(60)' &
squatter=$!
wait_for 5 port_4791_used $A
refuse "no device while somebody else has UDP port 4791" in_ns $A rdma link add $DEV_A type "$DRIVER" netdev veth0
gone $DEV_A
result $? "no half-made device"
kill $squatter
wait $squatter 2>/dev/null
expect "a device once the port is free again" link_add $A $DEV_A
pingpong $DEV_A $DEV_B
result $? "and it works"

# the netdev, then the whole namespace, with the device on it
ip -n $A link del veth0
eventually "netdev removed: device gone" gone $DEV_A
eventually "netdev's peer removed: device gone" gone $DEV_B $B
port_4791_free $A
result $? "UDP port 4791 is free after that"
hosts_down
hosts_up 9000
link_add $A $DEV_A
# a name that can be looked for after the namespace is gone: all namespaces show all devices
ip netns del $A
eventually "namespace removed: device gone" eval "! rdma link show | grep -qw $DEV_A/1"
ip netns add $A

hosts_down
expect "the module can be removed" driver_unload
! driver_loaded
result $? "the module is gone"
ktap_end
