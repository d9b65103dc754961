# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# NVMe over RDMA on a bad network for a long time: 0.1 % of the packets are lost in each direction, and now and
# then the link fails, mostly for less than the transport's patience, sometimes for longer. fio compares every
# block, and beside it streams of verify compare every byte and count every completion. One minute; in the full set an
# hour, or ten minutes between two machines; or SECONDS_OF_IO. Sourced, never run, after lib.sh.

. "$SELF/storage/nvme_lib.sh"
target_actions=(target_ram target_down target_lossy target_packets_lost target_clean target_streams target_streams_end)

minutes=1
[ "$SET" = full ] && minutes=${TWO_MACHINES:+10} minutes=${minutes:-60}
seconds=${SECONDS_OF_IO:-$((minutes * 60))}

# --- what each side does with its end of the link ---------------------------------------------------

# The first discipline cuts trains, so that packets are lost one by one
lossy() { # NETDEV
	tc qdisc replace dev "$1" root handle 1: tbf rate 100gbit burst 10k limit 100m &&
		tc qdisc replace dev "$1" parent 1: netem limit 100000 loss 0.1%
}

# packets_lost NETDEV : fails if there were few
packets_lost() {
	local packets lost
	read -r packets lost < <(tc -s qdisc show dev "$1" |
		awk '/netem/ { n = 1 } n && /dropped/ { sub(",", "", $7); print $4, $7; exit }')
	echo "$packets packets, $lost lost"
	[ "$lost" -gt $((packets / 3000)) ]
}

clean() { tc qdisc del dev "$1" root; } # NETDEV

target_lossy() { lossy "${T_NETDEVS[0]}"; }
target_packets_lost() { packets_lost "${T_NETDEVS[0]}"; }
target_clean() { clean "${T_NETDEVS[0]}"; }

# --- streams of verify, which must not notice anything ----------------------------------------------

STREAMS="1 2 3 4"
# patience for the longest failure of the link (lib.sh)
stream() { "$(program verify)" -p $((18650 + $1)) -S $((60 * SLOW)) -T 20 -R 7 -q 2 "${@:2}"; }

target_streams() {
	local i
	servers=()
	for i in $STREAMS; do
		stream "$i" -d rst0 -i "$TGT" >"$TMP/server.$i" 2>&1 &
		servers+=($!)
	done
}

# streams_end SIDE PID... : of those that run here; says what they have done
streams_end() {
	local side=$1 pid status=0
	shift
	for pid; do
		wait "$pid" || status=$?
	done
	tail -q -n 3 "$TMP/$side".*
	return $status
}

target_streams_end() { streams_end server "${servers[@]}"; }

streams_begin() {
	local i
	ask target_streams || return
	sleep $((2 * SLOW))
	clients=()
	for i in $STREAMS; do
		stream "$i" -d rsi0 -i "$INI" -t "$seconds" "$TGT" >"$TMP/client.$i" 2>&1 &
		clients+=($!)
	done
}

# --- the initiator --------------------------------------------------------------------------------

lossy_both() { lossy "${I_NETDEVS[0]}" && ask target_lossy; }
clean_both() { clean "${I_NETDEVS[0]}" && ask target_clean; }

# a failure each ten seconds, at one end or the other; each fourth of them a long one
flaps=0
flap_until_done() {
	while kill -0 "$1" 2>/dev/null; do
		sleep 8
		flaps=$((flaps + 1))
		case $((flaps % 4)) in
		0) ask outage ;;
		2) flap ;;
		*) ask flap ;;
		esac || return
	done
}

soak() {
	local d fio status before
	check "target" 60 ask target_ram
	check "connect" 60 connect "$TGT"
	d=$(wait_disk disk) || bail "there is no disk"
	streams_begin
	result $? "streams of verify begin"
	check "the link loses packets both ways" 30 lossy_both
	before=$(retransmissions_here)
	: >"$TMP/fio.runs"
	fio_until "$seconds" "$d" >"$TMP/under" 2>&1 &
	fio=$!
	flap_until_done $fio
	result $? "the link fails now and then"
	wait $fio
	status=$?
	notes <"$TMP/under"
	result $status "$seconds s of fio: no error"
	streams_end client "${clients[@]}" >"$TMP/out" 2>&1
	status=$?
	notes <"$TMP/out"
	result $status "streams of verify: no error"
	ask target_streams_end
	result $? "streams of verify: no error at the other end"
	note "$flaps link failures; $(($(retransmissions_here) - before)) retransmissions or requests for one"
	[ $flaps -ge $((seconds / (20 + 2 * SLOW))) ]
	result $? "there were $flaps link failures"
	check "packets of the initiator were lost" 30 packets_lost "${I_NETDEVS[0]}"
	notes <"$TMP/out"
	check "packets of the target were lost" 30 ask target_packets_lost
	notes <"$TMP/out"
	check "nothing is lost any more" 30 clean_both
	wait_for 60 states live
	check "afterwards, on a clean link: fio" 120 fio_mixed "$d"
	check "disconnect" 60 disconnect
	ask target_down
}
