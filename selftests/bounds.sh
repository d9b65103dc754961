#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# What one process can take from the machine: memory of the kernel, of each kind and of all together, compared with what it
# may lock and with its memory cgroup, also where that has a limit; and the latency of somebody else's ping-pong on the other
# processor.
#
# LOCK=KiB (8192): RLIMIT_MEMLOCK of the process. SECONDS_EACH=N (5). KINDS="...": these only; AMONG="...": these
# attackers, each by itself; there are raw and unready besides
. "$(dirname "$0")/lib.sh"

HOARD=$(program hoard) && ATTACK=$(program attack) && TORRENT=$(program torrent) && UNREADY=$(program unready) &&
	WOKEN=$(program woken) || bail "hoard, attack, torrent, unready or woken was not built"
: "${LOCK:=8192}" "${SECONDS_EACH:=5}"
TOP=/sys/fs/cgroup GROUP=$TOP/srtest_bounds
# What is neither charged nor locked must be small: kernel structures beside the objects, per-CPU caches, noise
SLACK_MIB=$((24 * (SLOW > 1 ? 4 : 1)))

bounds_finish() {
	[ ! -d "$GROUP" ] || { echo 1 >"$GROUP"/cgroup.kill 2>/dev/null; sleep 0.5; rmdir "$GROUP" 2>/dev/null; }
	finish
}
trap bounds_finish EXIT

# what is in files of memory is in the cache and does not go
free_mib() {
	awk '/^MemFree|^Buffers|^Cached|^SReclaimable/ { n += $2 } /^Shmem:/ { n -= $2 } END { print int(n / 1024) }' /proc/meminfo
}
charged_mib() { echo $(($(cat $GROUP/memory.current) >> 20)); }

# Of these, what makes raw packets: root of a container has the right to them, and to nothing else here
raw=" wq small_wq table rss flow counters together "

# as_nobody KIND COMMAND... : unprivileged, in the group, with little to lock, on host A
as_nobody() {
	local caps=(--inh-caps=-all)
	[[ $raw != *" $1 "* ]] || caps=("--inh-caps=-all,+net_raw" --ambient-caps=+net_raw)
	shift
	# shellcheck disable=SC2016 # for the inner shell
	bash -c 'echo $$ >"$0/cgroup.procs" && ulimit -l "$1" && shift && exec ip netns exec "$@"' $GROUP "$LOCK" $A \
		setpriv --reuid 65534 --regid 65534 --clear-groups "${caps[@]}" "$@"
}

# starts NAME KIND... : a process that takes of these, $pid, which ends when $out is closed; sets before (MiB)
starts() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 0.5
	before=$(free_mib)
	rm -f "$TMP/hold"
	mkfifo "$TMP/hold"
	: >"$TMP/said"
	as_nobody "$1" "$HOARD" -d $DEV_A -i $IP_A -t "$SECONDS_EACH" "${@:2}" <"$TMP/hold" >"$TMP/said" 2>&1 &
	pid=$!
	exec {out}>"$TMP/hold"
}

# hoard NAME KIND... : what it costs; sets took, charged (MiB) and said
hoard() {
	local before pid out
	starts "$@"
	wait_for $((SECONDS_EACH + 20)) grep -q ', then' "$TMP/said"
	took=$((before - $(free_mib)))
	charged=$(charged_mib)
	said=$(tail -n 1 "$TMP/said")
	exec {out}>&-
	wait_for 30 eval "! kill -0 $pid" || note "it does not end"
	rm "$TMP/hold"
}

# limited MIB : all kinds in turn, in a group that may have so much. It ends or is killed, as the group's memory is at an
# end, and never took more.
limited() {
	local before pid out least now most=$1 met SECONDS_EACH=60
	echo $((most << 20)) >$GROUP/memory.max
	echo 0 >$GROUP/memory.swap.max 2>/dev/null
	met=$(met_limit)
	starts together "${kinds[@]}"
	least=$before
	while kill -0 "$pid" 2>/dev/null && ! grep -q ', then' "$TMP/said"; do
		now=$(free_mib)
		[ "$now" -ge "$least" ] || least=$now
		sleep 0.05
	done
	exec {out}>&-
	{ wait_for 30 eval "! kill -0 $pid" && wait "$pid"; } 2>/dev/null
	met=$(($(met_limit) - met))
	note "of all kinds, in a group that may have $most MiB: $((before - least)) MiB less were free, the limit was met $met times: $(grep ', then' "$TMP/said" || echo killed)"
	[ $met -gt 0 ]
	result $? "memory.max: the limit was met"
	[ $((before - least)) -le $((most + SLACK_MIB)) ]
	result $? "memory.max: all kinds together took no more"
	echo max >$GROUP/memory.max
	wait_for 20 eval "[ \$((before - \$(free_mib))) -le $SLACK_MIB ]"
	result $? "memory.max: all of it is given back"
}
met_limit() { awk '$1 == "max" || $1 == "oom" { n += $2 } END { print n + 0 }' $GROUP/memory.events; }

grep -qsw memory $TOP/cgroup.controllers || {
	ktap_skip "bounds" "no memory controller in cgroup2"
	ktap_end
}
devices_up 9000
chmod 666 /dev/infiniband/uverbs*
echo +memory >$TOP/cgroup.subtree_control
mkdir $GROUP || bail "cannot make a cgroup"

# Tables, queues and buffers. What else there is to an object is charged only, and bounded by the number of objects
locked=" cq qp srq tags on_demand dm small_dm dm_mr dmabuf dmabuf_mr implicit piece wq "

kinds=(cq small_cq qp small_qp srq tags on_demand mr mw ah pd group event dm small_dm dm_mr implicit piece wq small_wq table rss
	flow counters xrcd xrc_srq xrc_target)
if chmod 666 /dev/udmabuf 2>/dev/null; then
	kinds+=(dmabuf dmabuf_mr)
else
	ktap_skip "dmabuf" "no udmabuf"
fi
[ -z "${KINDS:-}" ] || read -ra kinds <<<"$KINDS"
for kind in "${kinds[@]}"; do
	hoard "$kind" "$kind"
	note "$said: $took MiB less are free, $charged MiB are charged to its cgroup, $((LOCK >> 10)) MiB may be locked"
	# one of a kind that it may not have at all says nothing
	[[ $said == "$kind: "[1-9]* ]]
	result $? "$kind: it gets some"
	[ $((took - charged)) -le "$SLACK_MIB" ]
	result $? "$kind: what it holds is charged to it"
	[[ $locked == *" $kind "* ]] || continue
	[ "$took" -le $(((LOCK >> 10) + SLACK_MIB)) ]
	result $? "$kind: no more is unswappable than may be locked ($took MiB)"
	[ "$kind" = piece ] || [[ $said == *" then Cannot allocate memory" ]]
	result $? "$kind: that is the end of it"
done

# Of several kinds, one of each in turn
together=()
for kind in "${kinds[@]}"; do
	[[ $locked != *" $kind "* ]] || together+=("$kind")
done
hoard together "${together[@]}"
note "$said: $took MiB less are free, $charged MiB are charged to its cgroup"
[[ $said == *": "[1-9]* ]] && [ "$took" -le $(((LOCK >> 10) + SLACK_MIB)) ]
result $? "all that is locked, together: no more is unswappable than may be locked ($took MiB)"
hoard together "${kinds[@]}"
note "$said: $took MiB less are free, $charged MiB are charged to its cgroup"
[[ $said == *": "[1-9]* ]] && [ $((took - charged)) -le "$SLACK_MIB" ]
result $? "all kinds, together: what it holds is charged to it"
limited 16

# --- somebody else's time --------------------------------------------------------------------------

# Two processes of host A talk to each other on processor 1, and sleep in between.
# latency : a round trip of theirs, in us
latency() {
	on_a taskset -c 1 ibv_rc_pingpong -d $DEV_A -g "$GID" -e -n 3000 -s 64 >"$TMP/server" 2>&1 &
	sleep 0.5
	limit 60 ip netns exec $A taskset -c 1 ibv_rc_pingpong -d $DEV_A -g "$GID" -e -n 3000 -s 64 $IP_A >"$TMP/client" 2>&1
	wait $!
	sed -n 's|.* = \([0-9.]*\) usec/iter|\1|p' "$TMP/client"
}

# All of these are on processor 0, as far as they can choose: what workers do for them is not.

# Everything that is fast, between the two hosts
attackers=()
attack_transfers() {
	local port=18710 tool size
	for tool in ib_write_bw ib_send_bw ib_read_bw; do
		for size in 64 1048576; do
			ip netns exec "$B" taskset -c 0 "$tool" -d "$DEV_B" -x "$(gid_index "$B" "$DEV_B" "$IP_B")" -F --run_infinitely -D 5 -s "$size" -q 4 -p "$port" >/dev/null 2>&1 &
			attackers+=($!)
			wait_for 10 listens "$B" "$port"
			ip netns exec "$A" taskset -c 0 "$tool" -d "$DEV_A" -x "$GID" -F --run_infinitely -D 5 -s "$size" -q 4 -p "$port" "$IP_B" >/dev/null 2>&1 &
			attackers+=($!)
			port=$((port + 1))
		done
	done
}

# attack_by HOW : a process without rights, as attack.c has it
attack_by() {
	ip netns exec "$B" taskset -c 0 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
		"$ATTACK" -d "$DEV_B" -i "$IP_B" -p "$IP_A" "$1" >"$TMP/attack.$1" 2>&1 &
	attackers+=($!)
}
attack_faults() { attack_by faults; }
attack_events() { attack_by events; }
# from the other host, to the one that is asked
attack_connections() { attack_by connections; }

# What takes the kernel longest at a stretch, of what stretch.sh has: frames that are copied for 48 flows, as only who
# may have raw packets can ask for; connections each of which is tried again and again because it finds no receive; and
# events each of which wakes 900
attack_raw() {
	taskset -c 0 "$TORRENT" -d "$DEV_B" -i "$IP_B" -D "$DEV_A" -I "$IP_A" -f 48 -m 8000 -t 600 >"$TMP/attack.raw" 2>&1 &
	attackers+=($!)
}
attack_unready() {
	ip netns exec "$B" taskset -c 0 "$UNREADY" -d "$DEV_B" -i "$IP_B" -n 1000 -t 600 >"$TMP/attack.unready" 2>&1 &
	attackers+=($!)
}
attack_woken() {
	ip netns exec "$B" taskset -c 0 "$WOKEN" -d "$DEV_B" -i "$IP_B" 1000000 >"$TMP/attack.woken" 2>&1 &
	attackers+=($!)
}

# begun HOW : has it done something by now, and does so still?
begun() {
	case $1 in
	raw | woken) kill -0 "${attackers[-1]}" && [ ! -s "$TMP/attack.$1" ] ;;
	unready) kill -0 "${attackers[-1]}" && grep -q '^# all sent' "$TMP/attack.unready" ;;
	*) [ "$(tail -n 1 "$TMP/attack.$1")" -gt 0 ] ;;
	esac 2>/dev/null
}

# What a processor that is busy costs the other one by itself, as where both are threads of a machine that others use, too,
# is nothing that an attacker takes: so the ping-pong is first beside processes that only compute.
# beside_spinning : a round trip then
beside_spinning() {
	local n spinning=()
	for n in 1 2 3 4; do
		taskset -c 0 sh -c 'while :; do :; done' &
		spinning+=($!)
	done
	latency
	{ kill -9 "${spinning[@]}"; wait "${spinning[@]}"; } 2>/dev/null
}

# among HOW... : the ping-pong among these
among() {
	local how alone among
	alone=$(beside_spinning)
	attackers=()
	for how; do "attack_$how"; done
	for how; do [ "$how" = transfers ] || wait_for 60 begun "$how"; done
	sleep 2
	{ counters $B $DEV_B && echo "wire_bytes $(wire_bytes $B)"; } >"$TMP/before"
	among=$(latency)
	{ counters $B $DEV_B && echo "wire_bytes $(wire_bytes $B)"; } >"$TMP/after"
	note "of $* meanwhile: $(changed_counters "$TMP/before" "$TMP/after")"
	! cmp -s "$TMP/before" "$TMP/after"
	result $? "$*: the attackers were at it"
	# where there are several some may not get to it
	for how; do
		[ "$how" != transfers ] || continue
		note "$how: $(tail -n 1 "$TMP/attack.$how")"
		[ $# -eq 1 ] || continue
		begun "$how"
		result $? "$how have come about"
	done
	{ kill -9 "${attackers[@]}"; wait "${attackers[@]}"; } 2>/dev/null
	note "round trip of 64 bytes: ${alone:-none} us beside processes that compute, ${among:-none} us while the other processor is attacked: $*"
	awk -v a="${alone:-0}" -v b="${among:-0}" 'BEGIN { exit !(a > 0 && b > 0 && b <= 3 * a) }'
	result $? "$*: a ping-pong among attackers takes at most three times as long"
}

listens() { in_ns "$1" ss -ltn | grep -q ":$2 "; }

if [ "$SLOW" -gt 1 ] || [ "$(nproc)" -lt 2 ]; then
	ktap_skip "a ping-pong among attackers" "it takes two processors, and a machine whose speed means something"
else
	GID=$(gid_index $A $DEV_A $IP_A)
	note "round trip of 64 bytes: $(latency) us with nobody else"
	chmod 666 /dev/infiniband/rdma_cm
	# raw and unready have made it four to six times as long now and then: Documentation/security.md
	for how in ${AMONG:-transfers faults events connections woken}; do among "$how"; done
	among transfers faults events connections
fi

pair "a newcomer's transfer works" 60 "$(program verify) -d $DEV_A -i $IP_A" "$(program verify) -d $DEV_B -i $IP_B -n 3 $IP_A"
hosts_down
driver_unload
result $? "the module can be removed"
ktap_end
