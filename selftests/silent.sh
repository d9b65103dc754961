#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# silent.sh : a firewall drops everything between two hosts. Whoever waits for the peer gives up when it should, and
# nobody else waits at all.
. "$(dirname "$0")/lib.sh"

SILENT=$(program silent) && VERIFY=$(program verify) || bail "silent or verify was not built"
devices_up 9000
if ! on_b nft -f - <<-END 2>"$TMP/out"; then
	table inet silent {
		chain in {
			type filter hook prerouting priority -300;
		}
		chain out {
			type filter hook output priority -300;
		}
	}
	END
	ktap_skip "silent" "no nftables: $(tail -n 1 "$TMP/out")"
	ktap_end
fi
export SILENCE="ip netns exec $B nft add rule inet silent in meta l4proto udp drop"
# BTH's PSN is behind the UDP header's 8 bytes and 9 more; of a train it is the first packet's
export HOLE="ip netns exec $B nft 'add rule inet silent in udp dport 4791 @th,136,24 0xffffff drop;
	add rule inet silent out udp dport 4791 drop'"
export MARK="ip netns exec $B nft add rule inet silent in udp dport 4791 ip ecn set ce"
export SPEAK="ip netns exec $B nft flush table inet silent"
export SLOW

# Who has slowed down for congestion stays slow for a second
RISES=/sys/class/infiniband/$DEV_A/ports/1/cc_params/rp_time_reset
[ ! -e "$RISES" ] || echo 1000000 >"$RISES"
program_verdicts "requests" 300 "$SILENT" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B
[ ! -e "$RISES" ] || echo 300 >"$RISES"

# --- who goes, goes at once ------------------------------------------------------------------------------------

# quiet_pair : traffic of one kind between the hosts, and then there is silence
quiet_pair() {
	$SPEAK
	on_a rping -s -a $IP_A >"$TMP/server" 2>&1 &
	server=$!
	wait_for 10 listening $A
	: >"$TMP/client"
	on_b rping -c -a $IP_A -C 1000000 -v >"$TMP/client" 2>&1 &
	client=$!
	wait_for 10 grep -q 'ping data' "$TMP/client"
	eval "$SILENCE"
}
ended() { ! kill -0 "$1"; }

quiet_pair
kill -9 $client
wait_for 3 ended $client
result $? "a client that is killed while its peer is silent ends at once"
check "its device goes at once" 5 ip netns exec $B rdma link del $DEV_B
kill -9 $server 2>/dev/null
wait_for 3 ended $server
result $? "its server, too"
check "and the server's device" 5 ip netns exec $A rdma link del $DEV_A
$SPEAK
link_add_soon $A $DEV_A
link_add_soon $B $DEV_B

quiet_pair
check "a device in use is removed at once while the peer is silent" 5 ip netns exec $B rdma link del $DEV_B
wait_for 5 ended $client
result $? "its user notices"
kill -9 $server $client 2>/dev/null
$SPEAK
link_add_soon $B $DEV_B

# --- connections ---------------------------------------------------------------------------------------------------

# rdma_cm asks 16 times, 4.3 s apart
eval "$SILENCE"
start=$SECONDS
: >"$TMP/client"
on_b rping -c -a $IP_A -C 1 >"$TMP/client" 2>&1 &
client=$!
sleep 3
kill -0 $client
result $? "connecting goes on for a while"
if [ "$SET" = full ]; then
	wait_for 120 ended $client
	took=$((SECONDS - start))
	note "after $took s: $(tail -n 1 "$TMP/client")"
	[ $took -ge 60 ] && [ $took -le $((90 + 10 * SLOW)) ]
	result $? "and ends when rdma_cm has asked 16 times"
else
	kill -9 $client
	wait_for 3 ended $client
	result $? "and a process that is killed meanwhile ends at once"
fi
$SPEAK

pair "afterwards" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"
ktap_end
