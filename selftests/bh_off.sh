# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# For how long bottom halves are off. Sourced after lib.sh by those who ask.

BH_OFF=$(program bh_off) || bail "bh_off was not built"
# Microseconds: 2000 on the plain UML kernel. Less, from the environment, tells who the shorter ones are.
MOST_US=$((${MOST_US:-2000 * SLOW}))

# bh_off_begin : from now on, by the program $BH_OFF (bh_off.c)
bh_off_begin() {
	[ -p "$TMP/watch" ] || mkfifo "$TMP/watch"
	: >"$TMP/bh_off"
	"$BH_OFF" $MOST_US <"$TMP/watch" >"$TMP/bh_off" 2>&1 &
	bh_off_pid=$!
	exec 8<>"$TMP/watch"
	wait_for 20 grep -q '^# ready' "$TMP/bh_off"
}

# bh_off_end : until now. Of all stretches, the longest that was surely worked and the longest that may have been, in us, and for
# how long the processor was away in one: bh_sure, bh_most, bh_away, nothing when that is not known
bh_off_end() {
	local status
	echo >&8
	exec 8>&-
	wait "$bh_off_pid"
	status=$?
	grep '^# [0-9ib ]' "$TMP/bh_off" || notes <"$TMP/bh_off"
	# shellcheck disable=SC2034 # for who has asked
	read -r bh_sure bh_most bh_away < <(sed -n 's/^bh_off: //p' "$TMP/bh_off")
	return $status
}

# bh_off_unknown NAME : no trace events: a result, which is skipped
bh_off_unknown() {
	grep -q '^no trace events' "$TMP/bh_off" || return
	ktap_skip "$1: for how long bottom halves are off" "$(head -n 1 "$TMP/bh_off")"
}

# soon_on NAME COMMAND... : bottom halves are on again soon, whenever they were off while the command ran. A time in which the machine
# below let something else run is not counted, if that was long enough to be seen; what is not known so well, because that
# happened in the middle of the longest stretch, is tried again. One stretch that has surely taken longer is a failure,
# if there is one in two attempts: what the driver does it does again, and a machine that is away many times for less
# than bh_off sees hits the same load seldom twice.
soon_on() {
	local name=$1 try status over=0
	shift
	for try in 1 2 3 4 5; do
		bh_off_begin
		"$@"
		status=$?
		bh_off_end || status=$?
		[ $status -eq 0 ] || bh_most=
		[ "${bh_most:-$((MOST_US + 1))}" -gt $MOST_US ] || break
		[ "${bh_sure:-0}" -le $MOST_US ] || over=$((over + 1))
		[ $over -lt 2 ] || break
	done
	! bh_off_unknown "$name" || return 0
	[ "${bh_most:-0}" -gt 0 ] && [ "$bh_most" -le $MOST_US ]
	result $? "$name: bottom halves are off for $MOST_US us at most (${bh_sure:-unknown} to ${bh_most:-unknown}, in attempt $try)"
}
