# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# The stock tools' cases. Sourced by stock_local.sh and stock_netns.sh, which say where server and
# client run: SERVER_DEV, SERVER_IP (host A) and CLIENT_NS, CLIENT_DEV, CLIENT_IP. What the tools say
# to each other before they use RDMA goes over IPv4 ($IP_A), because few of them know IPv6.

# one case: NAME SECONDS SERVER CLIENT, with a prefix that says where it runs
stock_pair() {
	local name=$1
	shift
	pair "$WHERE: $name" "$@"
}

# --- libibverbs examples -----------------------------------------------------------------------------

# pingpong NAME TOOL [OPTIONS]
pingpong() {
	local name=$1 tool=$2
	shift 2
	stock_pair "$name" 30 "$tool -d $SERVER_DEV -g $SERVER_GID $*" \
		"$tool -d $CLIENT_DEV -g $CLIENT_GID $* $IP_A"
}

pingpong_quick() {
	pingpong "ibv_rc_pingpong" ibv_rc_pingpong -n 100 -c
	pingpong "ibv_uc_pingpong" ibv_uc_pingpong -n 100 -c
	pingpong "ibv_ud_pingpong" ibv_ud_pingpong -n 100 -s 1000
}

pingpongs() {
	pingpong_quick
	pingpong "ibv_rc_pingpong with events" ibv_rc_pingpong -n 100 -c -e
	pingpong "ibv_rc_pingpong, 1 byte" ibv_rc_pingpong -n 100 -c -s 1
	pingpong "ibv_rc_pingpong, 65537 bytes, MTU 256" ibv_rc_pingpong -n 20 -c -s 65537 -m 256
	pingpong "ibv_rc_pingpong, 1 MiB" ibv_rc_pingpong -n 10 -c -s 1048576
	pingpong "ibv_uc_pingpong with events, 1 MiB" ibv_uc_pingpong -n 10 -c -s 1048576 -e
	pingpong "ibv_ud_pingpong with events" ibv_ud_pingpong -n 100 -s 1000 -e
	if has_srq; then
		pingpong "ibv_srq_pingpong" ibv_srq_pingpong -n 200 -c
	else
		ktap_skip "$WHERE: ibv_srq_pingpong" "the device has no shared receive queues"
	fi
	if has_xrc; then
		pingpong "ibv_xsrq_pingpong" ibv_xsrq_pingpong -n 20
	else
		ktap_skip "$WHERE: ibv_xsrq_pingpong" "the device has no XRC"
	fi
}

has_srq() { in_ns "$A" ibv_devinfo -v -d "$SERVER_DEV" | grep -q 'max_srq:[[:space:]]*[1-9]'; }

has_xrc() { in_ns "$A" ibv_devinfo -v -d "$SERVER_DEV" | grep -qw XRC; }

# --- perftest ------------------------------------------------------------------------------------------

# Only what is meant to be there: perftest says things like "Couldn't" and exits 0.
perftest_ok() { grep -qE '^ *[0-9]+ +[0-9]+ ' "$TMP/client" && ! grep -qE "Couldn't|Failed|Unable" "$TMP/client"; }

# What a device has counted that is not nothing, in a line: what was lost, and where
counted() { counters "$1" "$2" | awk '$2 > 0 { printf "%s %s, ", $1, $2 }' | sed "s/^/# $2 so far: /; s/, $/\n/"; }

# perftest TOOL [OPTIONS] : both sides; prints the client's last row of numbers
perftest() {
	local tool=$1 options=${*:2} status
	run_pair 60 "$A" "$tool -F -d $SERVER_DEV -x $SERVER_GID $options" \
		"$CLIENT_NS" "$tool -F -d $CLIENT_DEV -x $CLIENT_GID $options $IP_A" && perftest_ok
	status=$?
	if [ $status -ne 0 ]; then
		counted "$A" "$SERVER_DEV"
		counted "$CLIENT_NS" "$CLIENT_DEV"
	fi
	result $status "$WHERE: $tool $options"
	grep -E '^ *[0-9]+ +[0-9]+ ' "$TMP/client" | tail -n 1 | tr -s ' ' | sed 's/^/# bytes, iterations, figures:/'
	return $status
}

# all verbs, all sizes
perftests_short() {
	perftest ib_send_bw -a -n 5
	perftest ib_write_bw -a -n 5
	perftest ib_read_bw -a -n 5
	perftest ib_atomic_bw -n 200
	perftest ib_send_lat -c UD -s 1000 -n 100
	perftest ib_write_bw -c UC -a -n 5
	perftest ib_send_lat -c UC -a -n 5
}

# every feature once
perftests_features() {
	perftest ib_send_bw -e -b -q 4 -s 4096 -n 100
	perftest ib_write_bw -b -q 4 -R -s 65536 -n 50
	perftest ib_read_lat -s 4097 -n 50
	perftest ib_write_lat -R -s 64 -n 50
	perftest ib_send_bw -c UD -s 1024 -n 200
	perftest ib_send_bw -c UC -s 65536 -n 200
	perftest ib_send_bw --use-srq -q 4 -s 4096 -n 200
	has_xrc && perftest ib_send_bw -c XRC -q 4 -s 4096 -n 200
}

# reliable connections: verbs, sizes and options
perftests_rc() {
	local tool
	for tool in send write read; do
		perftest ib_${tool}_bw -a -n 20
		perftest ib_${tool}_bw -a -b -n 20
		perftest ib_${tool}_bw -R -s 65536 -n 200
		perftest ib_${tool}_bw -q 8 -s 4096 -n 200
		perftest ib_${tool}_bw -s 3 -n 1000 -Q 50
		perftest ib_${tool}_lat -a -n 20
		perftest ib_${tool}_lat -R -n 100
	done
	# write_bw and write_lat have no completions to wait for on the other side
	perftest ib_send_bw -e -s 65536 -n 200
	perftest ib_send_bw -e -b -q 4 -s 4096 -n 200
	perftest ib_send_lat -e -n 100
	perftest ib_read_bw -e -s 65536 -n 200
	perftest ib_read_lat -e -n 100
	perftest ib_send_bw -m 256 -s 100000 -n 50
	perftest ib_write_bw -m 256 -s 100000 -n 50
	perftest ib_read_bw -m 256 -s 100000 -n 50
	perftest ib_write_bw -l 8 -s 64 -n 800
	perftest ib_send_bw -I 64 -s 64 -n 800
}

perftests_atomic() {
	local tool
	for tool in CMP_AND_SWAP FETCH_AND_ADD; do
		perftest ib_atomic_bw -A $tool -n 500
		perftest ib_atomic_lat -A $tool -n 200
	done
	perftest ib_atomic_bw -R -n 200
	perftest ib_atomic_bw -b -q 4 -n 500
}

perftests_uc() {
	local tool
	for tool in send write; do
		perftest ib_${tool}_bw -c UC -a -n 20
		perftest ib_${tool}_bw -c UC -b -q 4 -s 65536 -n 100
		perftest ib_${tool}_lat -c UC -a -n 20
	done
	perftest ib_send_bw -c UC -e -s 4096 -n 200
}

perftests_xrc() {
	local tool
	for tool in send write read; do
		perftest ib_${tool}_bw -c XRC -a -n 20
		perftest ib_${tool}_bw -c XRC -b -q 4 -s 65536 -n 100
		perftest ib_${tool}_lat -c XRC -a -n 20
	done
	perftest ib_atomic_bw -c XRC -n 200
}

perftests_srq() {
	perftest ib_send_bw --use-srq -q 8 -s 4096 -n 500
	perftest ib_send_bw --use-srq -c UD -s 1024 -n 500
	perftest ib_send_lat --use-srq -s 4096 -n 100
}

perftests_ud() {
	perftest ib_send_bw -c UD -s 1024 -n 500
	perftest ib_send_bw -c UD -b -s 1 -n 500
	perftest ib_send_bw -c UD -R -s 1000 -n 200
	perftest ib_send_bw -c UD -e -s 1000 -n 200
	perftest ib_send_lat -c UD -a -n 20
	perftest ib_send_lat -c UD -R -n 100
}

perftests_all() {
	perftests_rc
	perftests_atomic
	perftests_uc
	! has_xrc || perftests_xrc
	perftests_srq
	perftests_ud
}

# --- rdma_cm -------------------------------------------------------------------------------------------

# shellcheck disable=SC2153 # the addresses are set by those who source this
rping_quick() {
	stock_pair "rping, data verified" 30 "rping -s -a $SERVER_IP -C 20 -V -v" \
		"rping -c -a $SERVER_IP -I $CLIENT_IP -C 20 -V -v"
}

rdmacm_tools() {
	rping_quick
	stock_pair "rping, 60000 bytes" 30 "rping -s -a $SERVER_IP -C 5 -S 60000 -V" \
		"rping -c -a $SERVER_IP -C 5 -S 60000 -V"
	stock_pair "ucmatose" 30 "ucmatose -b $SERVER_IP -C 20 -S 1000" "ucmatose -s $SERVER_IP -C 20 -S 1000"
	stock_pair "ucmatose, 8 connections" 30 "ucmatose -b $SERVER_IP -c 8 -C 5 -S 100" \
		"ucmatose -s $SERVER_IP -c 8 -C 5 -S 100"
	stock_pair "rstream" 30 "rstream -b $SERVER_IP -S 4096 -C 20 -I 10" "rstream -s $SERVER_IP -S 4096 -C 20 -I 10"
	stock_pair "rstream, 1 MiB" 30 "rstream -b $SERVER_IP -S 1048576 -C 3 -I 3" \
		"rstream -s $SERVER_IP -S 1048576 -C 3 -I 3"
	stock_pair "riostream" 30 "riostream -b $SERVER_IP -S 4096 -C 20 -I 10 -T v" "riostream -s $SERVER_IP -S 4096 -C 20 -I 10 -T v"
	stock_pair "udaddy" 30 "udaddy -b $SERVER_IP -C 20 -S 1000" "udaddy -s $SERVER_IP -C 20 -S 1000"
	stock_pair "rdma_server, rdma_client" 30 "rdma_server -s $SERVER_IP -p 7471" "rdma_client -s $SERVER_IP -p 7471"
	# rdma_xserver listens where IPv4 is, and so does cmtime
	if [[ $SERVER_IP != *:* ]]; then
		! has_xrc || stock_pair "rdma_xserver, rdma_xclient, XRC" 30 "rdma_xserver -p 7471 -c x" \
			"rdma_xclient -s $SERVER_IP -p 7471 -c x"
		stock_pair "rdma_xserver, rdma_xclient" 30 "rdma_xserver -p 7471" "rdma_xclient -s $SERVER_IP -p 7471"
		# Some of its connections have made-up queue pair numbers, of which the core forgets none for a while
		cmtime_qpn=$((${cmtime_qpn:-1000} + 2000))
		stock_pair "cmtime, 20 connections" 30 "cmtime -b $SERVER_IP -c 20 -q $cmtime_qpn" \
			"cmtime -s $SERVER_IP -c 20 -q $((cmtime_qpn + 1000))"
	fi
}

# gids : of the two addresses
stock_gids() {
	SERVER_GID=$(gid_index "$A" "$SERVER_DEV" "$SERVER_IP") &&
		CLIENT_GID=$(gid_index "$CLIENT_NS" "$CLIENT_DEV" "$CLIENT_IP") ||
		bail "$WHERE: no GID of $SERVER_IP or $CLIENT_IP"
}
