#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A kernel that has IPv6 and was told not to use it (ipv6.disable=1): devices come, RoCE over IPv4 works in both versions,
# and neither a process that wants IPv6 addresses nor frames of RoCE v1 that have some meet tables that are not there.
. "$(dirname "$0")/lib.sh"

NOIPV6=$(program noipv6) && VERIFY=$(program verify) || bail "noipv6 or verify was not built"
grep -qw 'ipv6.disable=1' /proc/cmdline || {
	ktap_skip "noipv6" "this kernel was not booted with ipv6.disable=1"
	ktap_end
}

# frames : from host B to host A, RoCE v1 between addresses of several kinds; nobody waits for them
frames() {
	in_ns $B python3 - "$(in_ns $A cat /sys/class/net/veth0/address)" <<-'END'
		import socket
		import struct
		import sys

		sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		sock.bind(("veth0", 0))
		to, own = bytes.fromhex(sys.argv[1].replace(":", "")), sock.getsockname()[4]
		mapped = bytes(10) + b"\xff\xff"
		us, them = mapped + socket.inet_aton("10.98.0.1"), mapped + socket.inet_aton("10.98.0.2")
		ends = [socket.inet_pton(socket.AF_INET6, text) for text in
		        ("ff0e::98", "ff02::1", "fe80::98", "2001:db8::98", "fd98::1", "::1", "::")] + [us, them]
		bth = struct.pack("!BBHII", 100, 0, 0xffff, 1, 0)
		for dgid in ends:
		    for sgid in ends:
		        grh = struct.pack("!IHBB", 6 << 28, len(bth) + 4, 27, 64) + sgid + dgid
		        sock.send(to + own + b"\x89\x15" + grh + bth + bytes(4))
		print(f"{len(ends) ** 2} frames")
	END
}

# talks NAME : two hosts over IPv4
talks() { pair "$1" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"; }

before=$(splats)
for v1 in 0 1; do
	devices_up 9000 2>/dev/null
	[ $v1 -eq 0 ] || {
		# devices that are made from now on
		echo 1 >/sys/module/sroce/parameters/roce_v1
		link_del $A $DEV_A && link_del $B $DEV_B && link_add $A $DEV_A && link_add $B $DEV_B
		result $? "v1: new devices"
	}
	name="roce_v1 $v1"
	talks "$name: verify"
	program_verdicts "$name: addresses" 200 in_ns $A "$NOIPV6" -d $DEV_A -i $IP_A
	frames | notes
	talks "$name: verify afterwards"
done
echo 0 >/sys/module/sroce/parameters/roce_v1
unharmed "$before"
