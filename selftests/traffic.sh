# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What netdevs.sh and netns.sh share: netdevs that move, and traffic meanwhile. Sourced after lib.sh.

# shellcheck disable=SC2034 # for who includes it
VERIFY=$(program verify) && VERIFY_UD=$(program verify_ud) && STRAY=$(program stray) || bail "the test programs were not built"
rounds=3
[ "$SET" = full ] && rounds=20
# shellcheck disable=SC2034 # for those who source it
C=srtest_c DEV_C=srt_c
# the addresses of what stands on top of veth0
# shellcheck disable=SC2034
TOP_A=10.99.0.1 TOP_B=10.99.0.2 TOP6_A=fd99::1 TOP6_B=fd99::2

# expect NAME COMMAND... ; eventually NAME COMMAND... : at once, or within ten seconds
expect() { check "$1" 20 "${@:2}"; }
eventually() {
	local name=$1
	shift
	wait_for 10 "$@"
	result $? "$name"
}

# param NAME VALUE : of the module
param() {
	local f=/sys/module/sroce/parameters/$1
	[ -w "$f" ] && echo "$2" >"$f"
}

has_gid() { gid_index "$1" "$2" "$3" >/dev/null; }
lacks_gid() { ! gid_table "$1" "$2" | grep -q "$(gid_of "$3")"; }
exists() { in_ns "$1" rdma link show "$2/1" >/dev/null 2>&1; }
gone() { ! exists "$@"; }
# its number is another one when the device was made anew
dev_number() { in_ns "$1" rdma dev show "$2" | awk -F: '{ print $1 }'; }

# verify NAME IP_A IP_B [OPTIONS] ; datagrams NAME IP_A IP_B [OPTIONS]
# with $PINNED before the programs
PINNED=
# shellcheck disable=SC2153 # the devices are lib.sh's
verify() {
	local name=$1 ipa=$2 ipb=$3
	shift 3
	pair "$name" 90 "$PINNED $VERIFY -d $DEV_A -i $ipa -S $((15 * SLOW))" \
		"$PINNED $VERIFY -d $DEV_B -i $ipb -n $rounds -S $((15 * SLOW)) $VERIFY_OPTIONS $* $ipa"
}
datagrams() {
	local name=$1 ipa=$2 ipb=$3
	shift 3
	pair "$name" 60 "$PINNED $VERIFY_UD -d $DEV_A -i $ipa $*" "$PINNED $VERIFY_UD -d $DEV_B -i $ipb -n $((rounds * 50)) $* $ipa"
}
cm() { pair "$1" 40 "rping -s -a $2 -C 10 -V" "rping -c -a $2 -I $3 -C 10 -V"; }

# connected NAMESPACE DEVICE : all four QPs of a program are
connected() { [ "$(in_ns "$1" rdma resource show qp link "$2/1" | grep -c 'state RTS.*comm verify')" -ge 4 ]; }

# traffic_start SECONDS IP_A IP_B [HOST_A] : between host A (or $SERVER_NS) and host B, in the background; until traffic_end,
# but no longer than that. HOST_A is where its programs meet, if that is not IP_A.
traffic_start() {
	ip netns exec "${SERVER_NS:-$A}" "$VERIFY" -d "$DEV_A" -i "$2" -S $((15 * SLOW)) >"$TMP/traffic.a" 2>&1 &
	traffic=($!)
	wait_for 5 listening "${SERVER_NS:-$A}"
	# shellcheck disable=SC2086 # options
	ip netns exec $B "$VERIFY" -d $DEV_B -i "$3" -S $((15 * SLOW)) -t "$(($1 * SLOW))" $VERIFY_OPTIONS "${4:-$2}" >"$TMP/traffic.b" 2>&1 &
	traffic+=($!)
	wait_for 10 connected "${SERVER_NS:-$A}" "$DEV_A"
	wait_for 10 connected "$B" "$DEV_B"
}

# traffic_end NAME STATUS... : how both programs may end
traffic_end() {
	local name=$1 i status bad=0 end=$((SECONDS + 60 * SLOW))
	shift
	# one that ought to have ended is not asked to
	[[ " $* " != *" 0 "* ]] || kill -USR1 "${traffic[1]}" 2>/dev/null
	for i in 0 1; do
		while kill -0 "${traffic[i]}" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.1; done
		kill -9 "${traffic[i]}" 2>/dev/null && note "had to be killed"
		wait "${traffic[i]}"
		status=$?
		[[ " $* " == *" $status "* ]] || bad=1
	done 2>/dev/null
	note "host A: $(tail -n 1 "$TMP/traffic.a"); host B: $(tail -n 1 "$TMP/traffic.b")"
	result $bad "$name"
}

