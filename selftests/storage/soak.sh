#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# NVMe over RDMA on a bad network for a long time: 0.1 % of the packets are lost in each direction, and now and
# then the link fails, mostly for less than the transport's patience, sometimes for longer. fio compares every
# block. One minute, or ten in the full set.
. "$(dirname "$0")/lib.sh"
. "$SELF/storage/nvme_lib.sh"
need_both

minutes=1
[ "$SET" = full ] && minutes=10
seconds=${SECONDS_OF_IO:-$((minutes * 60))}

# The first discipline cuts trains, so that packets are lost one by one
lossy() {
	local d
	for d in si0 st0; do
		tc qdisc replace dev $d root handle 1: tbf rate 100gbit burst 10k limit 100m &&
			tc qdisc replace dev $d parent 1: netem limit 100000 loss 0.1% || return
	done
}

dropped() { # both ends
	{ tc -s qdisc show dev si0; tc -s qdisc show dev st0; } |
		awk '/netem/ { n = 1 } n && /dropped/ { sub(",", "", $7); print $4, $7; n = 0 }' |
		awk '{ p += $1; d += $2 } END { print p + 0, d + 0 }'
}

# a failure each ten seconds, each fourth of them a long one
flaps=0
flap_until_done() {
	while kill -0 "$1" 2>/dev/null; do
		sleep 8
		flaps=$((flaps + 1))
		if [ $((flaps % 4)) -eq 0 ]; then link_flap 0 $((5 * SLOW)); else link_flap 0 0.5; fi
	done
}

links_up 1
RAM=$(ram_disk sram0 512) || bail "no RAM disk"
target_up "$RAM" && connect $TGT
result $? "target and connection"
d=$(wait_disk disk) || bail "there is no disk"
lossy || bail "no netem"
before=$(retransmissions_here)
: >"$TMP/fio.runs"
fio_until "$seconds" "$d" >"$TMP/under" 2>&1 &
fio=$!
flap_until_done $fio
wait $fio
status=$?
notes <"$TMP/under"
result $status "$seconds s of fio: no error"
read -r packets lost < <(dropped)
note "$flaps link failures; $packets packets, $lost lost; $(($(retransmissions_here) - before)) retransmissions or requests for one"
[ "$lost" -gt $((packets / 3000)) ] && [ $flaps -ge $((seconds / 20)) ]
result $? "packets were lost, the link has failed"
tc qdisc del dev si0 root
tc qdisc del dev st0 root
wait_for 60 states live
check "afterwards, on a clean link: fio" 120 fio_mixed "$d"
check "disconnect" 60 disconnect
ktap_end
