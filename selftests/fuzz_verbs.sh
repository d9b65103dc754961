#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Processes of two users that try everything at once (fuzz_verbs.c), on two devices joined by a link, beside somebody
# who minds his own business; in some rounds the devices are taken away under all of them. Afterwards nothing of it
# is left, and a newcomer's transfer works. The kernel log must be clean, also when all of it is taken down.
#
# ROUNDS=N at most, each with a seed of its own (8; 120 in a full run)  TIME=SECONDS after which none is begun, but for
# the first (30; without end)  LENGTH=SECONDS of a round (4; 8)  SEED= of the first  WAY= what is taken away in all rounds
# FUZZ_OPTIONS="-x ROLE ..." leaves kinds of work out; -n, memory whose pages never come, which a quarter of the seeds has, and
# with -N all
#
# ENOUGH=STEPS from which on each command, operation and type of queue pair must have been carried out (1,000,000)
#
# ADMIN=yes|no  in all rounds, or in none, an administrator asks for this and that meanwhile (half of them)
#
# SEED=S ROUNDS=1 repeats a round: each thread takes the same decisions again as long as the kernel answers the same.
# When one thread comes before another cannot be repeated, so what needs a race may need many runs. The seeds in
# fuzz_verbs.seeds are run first, always (SEEDS= is another file); one of another generator is a failure.
. "$(dirname "$0")/lib.sh"
. "$SELF/bh_off.sh"

FUZZ=$(program fuzz_verbs) && VERIFY=$(program verify) && generator=$("$FUZZ" -g) || bail "fuzz_verbs or verify was not built"
asked=${ROUNDS:-}
amount ROUNDS 8 120
amount TIME 30 86400
amount LENGTH 4 8
: "${ENOUGH:=1000000}" "${SEED:=$RANDOM$RANDOM}" "${SEEDS:=$SELF/fuzz_verbs.seeds}" "${FUZZ_OPTIONS=}" "${ADMIN=}"
seeded ROUNDS TIME LENGTH
# When a file loses pages that a process has mapped, user mode Linux may go through that one's mappings without their lock
# (flush_tlb_mm()), and lockdep says so.
! grep -qs 'User Mode Linux' /proc/cpuinfo || FUZZ_OPTIONS+=" -f"
if [ "$DRIVER" != sroce ]; then
	ktap_skip "fuzz_verbs" "it speaks sroce's ABI only"
	ktap_end
fi

# Rounds of eight seconds for half an hour: with two processors user mode Linux has died in it (Documentation/security.md),
# and then nothing that comes after it is run
if [ "$SET" = full ] && grep -qs 'User Mode Linux' /proc/cpuinfo && [ "$(nproc)" -gt 1 ]; then
	ktap_skip "fuzz_verbs" "user mode Linux with more than one processor: see the step 'random commands'"
	ktap_end
fi

# the seed of a round says which; half of them leave everything as it is
ways=(nothing link nothing netdev nothing links nothing namespace)

# Some memory can only go if there is somewhere to go to
swap_up() {
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 2>/dev/null &&
		mkswap /dev/nullb0 >/dev/null 2>&1 && swapon /dev/nullb0 2>/dev/null
}

# huge pages for some of the zones of memory, which are as large as one
HUGE=/proc/sys/vm/nr_hugepages
huge_up() {
	[ -e "$HUGE" ] || return
	huge=$(cat "$HUGE")
	echo $((huge + 24)) >"$HUGE"
	[ "$(cat "$HUGE")" -gt "$huge" ]
}

# --- what happens meanwhile ---------------------------------------------------------------------------

# Whoever takes a netdev away waits in the kernel, which complains after 10 s, however slow the machine is
removal() {
	local status begun=$SECONDS
	limit 20 "$@" >"$TMP/out" 2>&1
	status=$?
	[ $((SECONDS - begun)) -lt 5 ] || note "$((SECONDS - begun)) s for $*"
	[ "$status" -eq 0 ] || { note "status $status of $*"; notes <"$TMP/out"; }
	return "$status"
}

take_nothing() { :; }
take_link() { removal ip netns exec "$A" rdma link del "$DEV_A"; }
take_netdev() { removal ip -n "$B" link del veth0; }
# both devices, and they come back while they are used
take_links() {
	removal ip netns exec "$A" rdma link del "$DEV_A" && removal ip netns exec "$B" rdma link del "$DEV_B" &&
		link_add_soon "$A" "$DEV_A" && link_add_soon "$B" "$DEV_B" && sleep 1 &&
		removal ip netns exec "$A" rdma link del "$DEV_A"
}
# whose processes would keep it alive; the others' are in another one
take_namespace() {
	kill -9 "${bystanders[1]}" 2>/dev/null
	removal ip netns del "$B"
}

connected() { [ "$(rdma resource show qp | grep -c 'link srt_[ab]/.*state RTS.*comm verify')" -ge 8 ]; }

bystanders_start() {
	ip netns exec $A "$VERIFY" -d $DEV_A -i $IP_A -S $((30 * SLOW)) >"$TMP/bystander.a" 2>&1 &
	bystanders=($!)
	wait_for 5 listening $A
	ip netns exec $B "$VERIFY" -d $DEV_B -i $IP_B -S $((30 * SLOW)) -t "$1" -m 65536 $IP_A >"$TMP/bystander.b" 2>&1 &
	bystanders+=($!)
	wait_for 10 connected
}

# Only in a round in which something is taken away may they notice that, and nothing else: 3, the peer or the device
# is gone; 137, killed by us. Whoever has nobody to talk to any more is not waited for until he has noticed.
bystanders_end() {
	local i status bad=0 may=" 0 " seconds=60
	[ "$1" = nothing ] || may=" 0 3 137 " seconds=2
	for i in 0 1; do
		wait_for $seconds eval "! kill -0 ${bystanders[i]}" || kill -9 "${bystanders[i]}"
		wait "${bystanders[i]}"
		status=$?
		[[ $may == *" $status "* ]] && continue
		# a process that is killed loses regions and queue pairs one by one, and its peer sees that
		[ "$1-$i-$status" = namespace-0-1 ] && tail -n 1 "$TMP/bystander.a" | grep -qE 'remote (access|operation) error' && continue
		bad=1
		note "bystander $i: status $status: $(tail -n 1 "$TMP/bystander.$([ $i = 0 ] && echo a || echo b)")"
	done 2>/dev/null
	return $bad
}

# administered_once DEED NAMESPACE DEVICE : what an administrator does to a device and its netdev; what it was before in the end
administered_once() {
	local ns=$2 dev=$3 kind qp
	case $1 in
	resources) for kind in qp mr cq pd ctx srq cm_id; do limit 20 rdma -dd resource show "$kind" link "$dev"; done ;;
	counters) counters "$ns" "$dev" && cat /sys/class/infiniband/"$dev"/ports/1/{hw_counters,counters}/* ;;
	settings) returns 20 settings "$dev" ;;
	qp_counters)
		limit 20 rdma statistic qp set link "$dev/1" auto type on
		limit 20 rdma statistic qp show link "$dev/1"
		limit 20 rdma statistic qp set link "$dev/1" auto off
		;;
	bound_counter)
		qp=$(limit 20 rdma resource show qp link "$dev/1" | sed -n 's/.* lqpn \([0-9]*\) .*/\1/p' | shuf -n 1 --random-source=/dev/urandom)
		[ -n "$qp" ] && limit 20 rdma statistic qp bind link "$dev/1" lqpn "$qp" &&
			limit 20 rdma statistic qp unbind link "$dev/1" cntn "$(limit 20 rdma statistic qp show link "$dev/1" |
				sed -n 's/.* cntn \([0-9]*\) .*/\1/p' | tail -n 1)" lqpn "$qp"
		;;
	moderation) limit 20 rdma dev set "$dev" adaptive-moderation off && limit 20 rdma dev set "$dev" adaptive-moderation on ;;
	mtu) limit 20 ip -n "$ns" link set veth0 mtu 4200 && limit 20 ip -n "$ns" link set veth0 mtu 9000 ;;
	address) limit 20 ip -n "$ns" addr add 10.97.0.1/24 dev veth0 && limit 20 ip -n "$ns" addr del 10.97.0.1/24 dev veth0 ;;
	offloads)
		for kind in gro tx-udp-segmentation tso; do
			limit 20 in_ns "$ns" ethtool -K veth0 $kind off && limit 20 in_ns "$ns" ethtool -K veth0 $kind on
		done
		;;
	queue)
		limit 20 in_ns "$ns" tc qdisc replace dev veth0 root pfifo limit 1000 &&
			limit 20 in_ns "$ns" tc qdisc del dev veth0 root
		;;
	esac
}
DEEDS=(resources counters settings qp_counters bound_counter moderation mtu address offloads queue)

# administrator SEED : until there is a file $TMP/enough. "DEED STATUS SECONDS" of each deed in $TMP/administered
administrator() {
	local deed begun
	RANDOM=$1
	while [ ! -e "$TMP/enough" ]; do
		deed=${DEEDS[RANDOM % ${#DEEDS[@]}]}
		begun=$SECONDS
		if ((RANDOM & 1)); then
			administered_once "$deed" "$A" "$DEV_A"
		else
			administered_once "$deed" "$B" "$DEV_B"
		fi >/dev/null 2>&1
		echo "$deed $? $((SECONDS - begun))" >>"$TMP/administered"
		sleep 0.0$((RANDOM % 10))
	done
}

# administrator_ends NAME : soon, and what he has asked for was answered
administrator_ends() {
	local slow
	: >"$TMP/enough"
	wait_for 60 eval "! kill -0 $admin"
	result $? "$1: whatever an administrator asks for comes to its end"
	slow=$(awk '$2 == 124 || $2 == 137 || $3 >= 20' "$TMP/administered")
	[ -z "$slow" ]
	result $? "$1: $(wc -l <"$TMP/administered") times within 20 s${slow:+, but for ${slow//$'\n'/, }}"
	cat "$TMP/administered" >>"$TMP/administered.all"
}

# how many objects of each kind the devices have
resources() { rdma resource show | sed -n "s/.*[0-9]*: \($DEV_A\|$DEV_B\): /\1: /p"; }

# no object of a process is left on those devices that are there
clean() { ! resources | grep -vxF "$unused"; }

# --- a round ------------------------------------------------------------------------------------------

# bh_off_round NAME : what the round has shown of that. That a round does not tell, because the machine below let something else
# run meanwhile, is no failure, as long as half of them do; nor is a single one with a stretch that has surely taken too long:
# see soon_on().
bh_off_round() {
	watched=$((watched + 1))
	bh_off_end || note "$1: not known for how long bottom halves were off"
	[ -n "$bh_most" ] || return 0
	echo "$bh_sure $bh_most" >>"$TMP/stretches"
	[ "$bh_sure" -le $MOST_US ] || note "$1: BOTTOM HALVES WERE OFF FOR $bh_sure to $bh_most us"
}

# fuzz_round NAME SEED WAY SECONDS
fuzz_round() {
	local name=$1 seed=$2 way=$3 seconds=$4 pid status admin
	note "$name: seed $seed, $way is taken away, $seconds s"
	: >"$TMP/fuzz"
	rm -f "$TMP/enough"
	: >"$TMP/administered"
	admin=
	bystanders_start $((seconds + 2))
	[ "$SLOW" -gt 1 ] || bh_off_begin
	# from a namespace that lives on; an array and not a function, so that it can be waited for
	# shellcheck disable=SC2086 # options
	timeout -k 2 $(((seconds + 120) * SLOW)) "$FUZZ" -d $DEV_A -i $IP_A -D $DEV_B -I $IP_B -s "$seed" -t "$seconds" \
		-w $((20 * SLOW)) $FUZZ_OPTIONS >"$TMP/fuzz" 2>&1 &
	pid=$!
	# on a machine that has much to do it may take seconds to open what is taken away
	wait_for 20 grep -q '^# begun' "$TMP/fuzz" || note "$name: it has not begun"
	if [ "$ADMIN" = yes ] || { [ -z "$ADMIN" ] && (((seed + seed / ${#ways[@]}) & 1)); }; then
		administrator "$seed" &
		admin=$!
	fi
	sleep "$((seconds / 2)).$((seed % 10))"
	take_"$way"
	result $? "$name: $way could be taken away"
	wait $pid
	status=$?
	[ "$SLOW" -gt 1 ] || bh_off_round "$name"
	grep '^# ' "$TMP/fuzz"
	sed -n 's/^# .* tables, \([0-9]*\) queue pairs of such, .* flows, \([0-9]*\) frames received$/\1 \2/p' "$TMP/fuzz" >>"$TMP/raw"
	sed -n 's/^# [0-9]* rings prepared, \([0-9]*\) moved to, .*; \([0-9]*\) rates$/\1 \2/p' "$TMP/fuzz" >>"$TMP/done"
	sed -n 's/^# \([0-9]*\) steps, .*/\1/p' "$TMP/fuzz" >>"$TMP/steps"
	sed -n 's/^# \([0-9]*\) regions of all .*, \([0-9]*\) of a dma-buf, \([0-9]*\) of device memory; \([0-9]*\) proc.*/implicit=\1 lent=\2 device=\3 house=\4/p
		s/^# memory: //p' "$TMP/fuzz" >>"$TMP/kinds"
	sed -n 's/^# \(commands\|methods\|completed\): //p' "$TMP/fuzz" >>"$TMP/carried"
	[ $status -eq 0 ] || grep -v '^# \|^ok' "$TMP/fuzz" | notes
	result $status "$name: seed $seed: nobody hangs, nothing foreign changes"
	[ -z "$admin" ] || administrator_ends "$name"
	bystanders_end "$way"
	result $? "$name: others did not notice"
	wait_for 10 clean || note "left over: $(resources); $(rdma resource show qp; rdma resource show mr; rdma resource show ctx)"
	clean
	result $? "$name: nothing is left"
	[ "$way" = nothing ] || devices_up 9000
}

newcomer() {
	pair "$1: new connections work" 60 "$VERIFY -d $DEV_A -i $IP_A" "$VERIFY -d $DEV_B -i $IP_B -n 3 $IP_A"
	pair "$1: rdma_cm works" 40 "rping -s -a $IP_A -C 5 -V" "rping -c -a $IP_A -I $IP_B -C 5 -V"
}

# restore : what of the machine's was changed
restore() {
	swapoff /dev/nullb0
	[ -z "$huge" ] || echo "$huge" >"$HUGE"
	[ -z "$patience" ] || echo "$patience" >/proc/sys/net/core/netdev_unregister_timeout_secs
}

# Only bash itself writes there, about each job that was killed; the programs have their logs.
exec 2>/dev/null

swap_up || note "no swap"
huge=''
huge_up || note "no huge pages"
swapped=$(sed -n 's/^pswpout //p' /proc/vmstat)
patience=$(cat /proc/sys/net/core/netdev_unregister_timeout_secs 2>/dev/null)
[ -z "$patience" ] || echo $((20 * SLOW)) >/proc/sys/net/core/netdev_unregister_timeout_secs
trap 'finish; restore' EXIT
devices_up 9000
: >"$TMP/administered.all"
before=$(splats) unused=$(resources) watched=0
# As in stretch.sh: for how long bottom halves are off, of which the bytes have a limit on any machine
TURNS=/sys/module/sroce/parameters
echo 1 >$TURNS/largest_turn
note "generator $generator"
while read -r seed way seconds of why; do
	case $of in
	any | "$generator") fuzz_round "seed $seed" "$seed" "$way" "$seconds" ;;
	*) ktap_fail "seed $seed was of generator $of, and decides otherwise now: take it out of fuzz_verbs.seeds, and see" \
		"that a unit test holds what it found (${why#\# })" ;;
	esac
done < <(grep -v '^#' "$SEEDS")
newcomer "after those seeds"
begun=$SECONDS
# few : have there been so few steps that some of what is asked for below may not have been tried yet? A machine that has little
# time for it gets more rounds, up to sixteen, unless somebody has said how many.
few() { [ -z "$asked" ] && [ $i -lt 16 ] && [ "$(awk '{ n += $1 } END { print n+0 }' "$TMP/steps")" -lt 30000 ]; }
for ((i = 0; ; i++)); do
	few || { [ $i -lt "$ROUNDS" ] && { [ $i -eq 0 ] || [ $((SECONDS - begun)) -lt "$TIME" ]; }; } || break
	fuzz_round "round $((i + 1))" $((SEED + i)) "${WAY:-${ways[(SEED + i) % ${#ways[@]}]}}" "$LENGTH"
	[ $((i % 10)) -ne 9 ] || newcomer "round $((i + 1))"
done
newcomer "in the end"
# What needs several calls in the right order is the first that a fuzzer does no longer when they change
awk '{ moved += $1; rates += $2 } END { print "# " moved+0 " queues resized, " rates+0 " rates"; exit !(moved && rates) }' "$TMP/done"
result $? "queues have been resized, and rates set"
awk '{ shares += $1; frames += $2 } END { print "# " shares+0 " queue pairs with tables, " frames+0 " frames"; exit !(shares && frames) }' "$TMP/raw"
result $? "raw packets have been received, and tables of work queues used"
# has KIND : can this kernel have such memory, or such a deed be done? What it can have and was not there is a failure.
has() {
	case $1 in
	dmabuf | lent) [ -e /dev/udmabuf ] ;;
	fuse) grep -qw fuse /proc/filesystems ;;
	hugetlb) [ -e "$HUGE" ] ;;
	userfaultfd) [ -e /proc/sys/vm/unprivileged_userfaultfd ] ;;
	swap) [ -e /proc/swaps ] && modinfo null_blk >/dev/null 2>&1 ;;
	hole | truncate) [[ " $FUZZ_OPTIONS " != *" -f "* ]] ;;
	*) true ;;
	esac
}
# wanted KIND : the short form is over before everything has had its turn; these are frequent enough
wanted() { [ "$SET" = full ] || [[ " implicit lent device house hugetlb " == *" $1 "* ]]; }
swapped=$(($(sed -n 's/^pswpout //p' /proc/vmstat) - swapped))
missed=()
while IFS='=' read -r kind times; do
	note "memory: $kind, $times"
	[ "$times" -gt 0 ] || ! wanted "$kind" || ! has "$kind" || missed+=("$kind")
done < <({ tr ' ' '\n' <"$TMP/kinds" && echo "swap=$swapped"; } | awk -F= '{ n[$1] += $2 } END { for (k in n) print k "=" n[k] }' | sort)
[ ${#missed[@]} -eq 0 ] && [ -s "$TMP/kinds" ]
result $? "there was memory of every kind, and in a full run everything was done to it (nothing of: ${missed[*]:-none})"
steps=$(awk '{ n += $1 } END { print n+0 }' "$TMP/steps")
missed=()
while read -r deed well times; do
	note "administrator: $deed, $times times, $well of them well"
	[ "$well" -gt 0 ] || missed+=("$deed")
done < <(awk -v deeds="${DEEDS[*]}" '{ n[$1]++; ok[$1] += !$2 }
	END { split(deeds, d, " "); for (i in d) print d[i], ok[d[i]] + 0, n[d[i]] + 0 }' "$TMP/administered.all" | sort)
if [ "$steps" -ge "$ENOUGH" ] && [ "$ADMIN" != no ]; then
	[ ${#missed[@]} -eq 0 ]
	result $? "an administrator's deeds were done (none of: ${missed[*]:-none})"
fi
# sums FILE : of its lines of NAME=N, the sum for each name
sums() { tr ' ' '\n' <"$1" | awk -F= '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' | sort; }
# refused NAME : not asked for. Nobody may do that, or it is only there to be refused: a context has one device; rings are not posted to by commands;
# of tags the traffic has none. Windows that are invalidated by their own queue, and XRC, need so many objects that fit that a
# million steps may be without.
refused() {
	[[ " GET_CONTEXT POLL_CQ REQ_NOTIFY_CQ POST_SEND POST_RECV POST_SRQ_RECV no_method tag_recv no_tag \
		invalidate XRC_INI XRC_TGT " == *" $1 "* ]]
}
missed=()
while read -r name times; do
	[ "$times" -gt 0 ] || refused "$name" || missed+=("$name")
done < <(sums "$TMP/carried")
sums "$TMP/carried" | awk '{ printf "%s=%s ", $1, $2 }' | fold -s -w 150 | sed 's/^/# /'
echo
if [ "$steps" -lt "$ENOUGH" ]; then
	note "not carried out in $steps steps: ${missed[*]:-none}"
else
	[ ${#missed[@]} -eq 0 ] && [ -s "$TMP/carried" ]
	result $? "each command, operation and type of queue pair was carried out (none of: ${missed[*]:-none})"
fi
bytes=$(cat $TURNS/largest_turn)
note "at most $bytes bytes, or what counts as such, at a stretch, in $(cat $TURNS/longest_turn) us"
echo 0 >$TURNS/largest_turn
[ "$bytes" -gt 0 ] && [ "$bytes" -le $((10 << 20)) ]
result $? "not more than 10 MiB at a stretch"
if [ "$SLOW" -gt 1 ]; then
	note "for how long bottom halves are off is a matter of the plain UML kernel"
elif ! bh_off_unknown "all rounds"; then
	known=$(awk -v most=$MOST_US '$2 <= most { n++ } END { print n + 0 }' "$TMP/stretches")
	over=$(awk -v most=$MOST_US '$1 > most { n++ } END { print n + 0 }' "$TMP/stretches")
	read -r worst < <(sort -rn "$TMP/stretches")
	[ "$known" -gt 0 ] && [ $((2 * known)) -ge $watched ]
	result $? "all rounds: of half of them it is known for how long bottom halves are off ($known of $watched)"
	[ "$over" -lt 2 ]
	result $? "all rounds: for $MOST_US us at most (${worst% *} in the worst, more in $over)"
fi
unharmed "$before"
