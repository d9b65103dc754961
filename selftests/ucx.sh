#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# ucx.sh : UCX as the distribution has built it, told the device and nothing else, or the transports, too.
. "$(dirname "$0")/lib.sh"

if ! command -v ucx_perftest >/dev/null; then
	ktap_skip "UCX" "no ucx_perftest (Debian: ucx-utils)"
	ktap_end
fi
# shellcheck disable=SC2119 # the usual MTU
devices_up

# -P 0: where it was built with MPI, it would wait for mpirun
sockets=
! ucx_perftest -h | grep -q '^ *-P ' || sockets="-P 0"

# ucx NAME SETTINGS OPTIONS : UCX chooses the first GID of an IPv4 address by itself
ucx() {
	local name=$1 settings=$2
	shift 2
	pair "$name" 60 "env UCX_NET_DEVICES=$DEV_A:1 $settings ucx_perftest $sockets $*" \
		"env UCX_NET_DEVICES=$DEV_B:1 $settings ucx_perftest $sockets $IP_A $*"
	grep -E '^Final:' "$TMP/client" | notes 1
}

ucx "nothing but the device: tagged messages" "" -t tag_lat -n 200 -s 64
ucx "nothing but the device: long ones" "" -t tag_bw -n 50 -s 262144

# uct TRANSPORT TEST OPTIONS : of its lower layer, which is told the device by an option
uct() {
	local options="-x $1 -t $2 ${*:3} $sockets"
	pair "$1: $2" 60 "ucx_perftest -d $DEV_A:1 $options" "ucx_perftest -d $DEV_B:1 $options $IP_A"
	grep -E '^Final:' "$TMP/client" | notes 1
}

for transport in rc_verbs ud_verbs; do
	uct $transport am_lat -n 200 -s 64
	uct $transport am_bw -n 200 -s 1024 -D zcopy
done
uct rc_verbs put_bw -n 100 -s 65536 -D zcopy
uct rc_verbs get -n 100 -s 65536 -D zcopy
uct rc_verbs fadd -n 100 -s 8

# The last one is what an MPI uses where nobody has chosen: reliable connections, made over datagrams
for transports in ud_v rc_v,ud_v rc; do
	ucx "$transports: tagged messages" UCX_TLS=$transports -t tag_lat -n 200 -s 64
	ucx "$transports: long ones" UCX_TLS=$transports -t tag_bw -n 50 -s 262144
done
ucx "active messages" UCX_TLS=rc -t ucp_am_bw -n 200 -s 4096
ucx "get" UCX_TLS=rc -t ucp_get -n 100 -s 65536
ucx "put" UCX_TLS=rc -t ucp_put_bw -n 100 -s 65536
ucx "atomic fetch and add" UCX_TLS=rc -t ucp_fadd -n 100 -s 8
gid_a=$(gid_index $A $DEV_A $IP6_A) gid_b=$(gid_index $B $DEV_B $IP6_B)
pair "datagrams over IPv6" 60 \
	"env UCX_NET_DEVICES=$DEV_A:1 UCX_IB_GID_INDEX=$gid_a UCX_TLS=ud_v ucx_perftest $sockets -t tag_lat -n 200" \
	"env UCX_NET_DEVICES=$DEV_B:1 UCX_IB_GID_INDEX=$gid_b UCX_TLS=ud_v ucx_perftest $sockets $IP_A -t tag_lat -n 200"
ktap_end
