# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What two devices say to each other, for tests where they are not alike or not on one machine. Sourced.
#
# What rdma_rxe on either side lets verify do. A timeout must not strike only because the machine is slow: rxe does not
# recover from each of them (that of 6.12 may give the packets of a message other PSNs when it sends them again).
# shellcheck disable=SC2034 # used by those who source this
RXE_VERIFY_OPTIONS="-T 18 -F -o send,send_imm,write,write_imm,read,cas,fadd,count"

# talk_cases : lines of NAME|SECONDS|SERVER|CLIENT, in which these stand for what differs:
#   %D %G  the device of this side and its GID index    %S %C  the IP of the server, of the client
#   %V     the path of verify    %U  the path of verify_ud    %O  options for verify
talk_cases() {
	local n=1000
	# an emulated machine is slow
	[ "$SET" = full ] || n=100
	cat <<-END
		ibv_rc_pingpong|60|ibv_rc_pingpong -d %D -g %G -n $n -c|ibv_rc_pingpong -d %D -g %G -n $n -c %S
		ibv_rc_pingpong, 1 MiB, MTU 1024|60|ibv_rc_pingpong -d %D -g %G -n 10 -c -s 1048576 -m 1024|ibv_rc_pingpong -d %D -g %G -n 10 -c -s 1048576 -m 1024 %S
		ibv_uc_pingpong|60|ibv_uc_pingpong -d %D -g %G -n $n -c|ibv_uc_pingpong -d %D -g %G -n $n -c %S
		ibv_srq_pingpong|60|ibv_srq_pingpong -d %D -g %G -n $n -c -q 4|ibv_srq_pingpong -d %D -g %G -n $n -c -q 4 %S
		ibv_ud_pingpong|60|ibv_ud_pingpong -d %D -g %G -n $n -s 1000|ibv_ud_pingpong -d %D -g %G -n $n -s 1000 %S
		verify|180|%V -d %D -i %S -S 60|%V -d %D -i %C -n 4 -S 60 %O %S
		verify, all path MTUs|180|%V -d %D -i %S -S 60|%V -d %D -i %C -n 2 -S 60 -q 5 -M all %O %S
		verify, datagrams|60|%U -d %D -i %S|%U -d %D -i %C -n $n %S
		ib_send_bw, all sizes|120|ib_send_bw -F -d %D -x %G -a -n 5|ib_send_bw -F -d %D -x %G -a -n 5 %S
		ib_write_bw, all sizes|120|ib_write_bw -F -d %D -x %G -a -n 5|ib_write_bw -F -d %D -x %G -a -n 5 %S
		ib_read_bw, all sizes|120|ib_read_bw -F -d %D -x %G -a -n 5|ib_read_bw -F -d %D -x %G -a -n 5 %S
		ib_atomic_bw|60|ib_atomic_bw -F -d %D -x %G -n $n|ib_atomic_bw -F -d %D -x %G -n $n %S
		ib_send_bw, both directions, 4 queue pairs, events|60|ib_send_bw -F -d %D -x %G -b -q 4 -e -s 4096 -n $n|ib_send_bw -F -d %D -x %G -b -q 4 -e -s 4096 -n $n %S
		ib_send_lat|60|ib_send_lat -F -d %D -x %G -s 64 -n $n|ib_send_lat -F -d %D -x %G -s 64 -n $n %S
		ib_write_bw, rdma_cm|60|ib_write_bw -F -d %D -R -s 65536 -n $n|ib_write_bw -F -d %D -R -s 65536 -n $n %S
		ib_send_lat, unreliable connection|60|ib_send_lat -F -d %D -x %G -c UC -a -n 10|ib_send_lat -F -d %D -x %G -c UC -a -n 10 %S
		ib_write_bw, unreliable connection|60|ib_write_bw -F -d %D -x %G -c UC -a -n 5|ib_write_bw -F -d %D -x %G -c UC -a -n 5 %S
		ib_send_bw, datagrams|60|ib_send_bw -F -d %D -x %G -c UD -s 1024 -n $n|ib_send_bw -F -d %D -x %G -c UD -s 1024 -n $n %S
		rping, data verified|60|rping -s -a %S -C 20 -V|rping -c -a %S -C 20 -V
		ucmatose|60|ucmatose -b %S -C 10 -S 1000|ucmatose -s %S -C 10 -S 1000
		rstream|60|rstream -b %S -S 4096 -C 20 -I 5|rstream -s %S -S 4096 -C 20 -I 5
		riostream|60|riostream -b %S -S 4096 -C 20 -I 5 -T v|riostream -s %S -S 4096 -C 20 -I 5 -T v
		udaddy|60|udaddy -b %S -C 20 -S 1000|udaddy -s %S -C 20 -S 1000
	END
}

# talk_fill TEXT DEVICE GID_INDEX SERVER_IP CLIENT_IP : with the stand-ins replaced
talk_fill() {
	local text=$1
	text=${text//%D/$2}
	text=${text//%G/$3}
	text=${text//%S/$4}
	text=${text//%C/$5}
	text=${text//%V/$(program verify)}
	text=${text//%U/$(program verify_ud)}
	echo "${text//%O/$VERIFY_OPTIONS}"
}
