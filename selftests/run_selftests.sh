#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# run_selftests.sh [quick|full] [TEST...] : run tests (all of them without a name), as root.
#
# Prints KTAP: each script is one result, with its own results indented below it. The last line is
#	N passed, N failed, N skipped
# counting the results of all scripts; the status is 0 when none failed.
#
# In a guest of the lab, where nobody else pins memory, no page may stay pinned behind a script: what was registered and is not let
# go of is seen by nothing else, neither a leak detector nor a list of objects.
cd "$(dirname "$0")" || exit 1

case ${1:-} in
quick | full) SET=$1 && shift ;;
esac
export SET=${SET:-quick} DRIVER=${DRIVER:-sroce}

# The ones that can take the machine's patience come last in the manifest.
tests=("$@")
[ $# -gt 0 ] || mapfile -t tests < <(bash ./manifest.sh list full)
[ ${#tests[@]} -gt 0 ] || exit 1

# seconds that a script may take as a whole
limit=600
[ "$SET" = full ] && limit=5400
limit=$((limit * ${SLOW:-1}))

# pins : how many pages are pinned now; 0 where the kernel does not tell
pins() {
	cat /proc/sys/vm/stat_refresh >/dev/null 2>&1
	awk '$1 == "nr_foll_pin_acquired" { n += $2 } $1 == "nr_foll_pin_released" { n -= $2 } END { print n + 0 }' /proc/vmstat
}

# unpinned N : soon there are no more than that
unpinned() {
	local end=$((SECONDS + 10 * ${SLOW:-1}))
	until [ "$(pins)" -le "$1" ]; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}

passed=0 failed=0 skipped=0 nr=0
echo "KTAP version 1"
echo "1..${#tests[@]}"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for test in "${tests[@]}"; do
	test=${test%.sh} nr=$((nr + 1))
	start=$SECONDS pinned=$(pins)
	echo "# $test on $DRIVER ($SET)"
	timeout -k 20 $limit bash "./$test.sh" 2>&1 | tee "$out" | sed -u 's/^/    /'
	status=${PIPESTATUS[0]}
	p=$(grep -c '^ok ' "$out") f=$(grep -c '^not ok ' "$out") s=$(grep -c '^ok .* # SKIP' "$out")
	# A script that died, or stopped half-way, is a failure of its own.
	if ! grep -q '^# Totals: ' "$out"; then
		echo "# $test ended with status $status and without its totals"
		f=$((f + 1))
	fi
	if [ -n "${LAB_TARGET:-}" ] && ! unpinned "$pinned"; then
		echo "# $test has left $(($(pins) - pinned)) pages pinned"
		f=$((f + 1))
	fi
	passed=$((passed + p - s)) failed=$((failed + f)) skipped=$((skipped + s))
	took="$((SECONDS - start)) s"
	if [ "$f" -gt 0 ]; then
		echo "not ok $nr $test: $f of $((p + f)) failed, $took"
	elif [ "$p" -eq "$s" ]; then
		echo "ok $nr $test # SKIP nothing could be tested"
	else
		echo "ok $nr $test: $((p - s)) results, $took"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
