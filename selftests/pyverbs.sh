#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# rdma-core's own test suite, and a table of what is skipped and why. What is in pyverbs_expected (everything that
# rdma_rxe passes) and, on sroce, in pyverbs_more and, of rdma-core 65.0 and newer ones, in pyverbs_newest has to pass by
# name, unless pyverbs_waiting says which feature it waits for; a test that fails is a failure whether it is in a list or not.
#
# PYVERBS=FOLDER   the suite, if it is not where Debian puts it. UPDATE=1: write the list from this run.
. "$(dirname "$0")/lib.sh"

expected=("$SELF/pyverbs_expected")
[ "$DRIVER" != sroce ] || expected+=("$SELF/pyverbs_more")
suite=${PYVERBS:-/usr/share/doc/rdma-core/tests}
[ -e "$suite/run_tests.py" ] && python3 -c 'import pyverbs' 2>/dev/null || {
	ktap_skip "pyverbs" "no pyverbs, or no tests in $suite"
	ktap_end
}
# Where the suite lies in its source; what Debian installs is older
version=$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$suite/../CMakeLists.txt" 2>/dev/null)
NEWEST=65.0
in_order() { printf '%s\n' "$@" | sort -CV; }
# newest_names : those of pyverbs_newest, but for what wants a newer kernel
newest_names() {
	local name kernel
	while read -r name kernel; do
		[[ $name == '#'* ]] || ! in_order "${kernel:-0}" "$(uname -r)" || echo "$name"
	done <"$SELF/pyverbs_newest"
}
if [ "$DRIVER" = sroce ] && [ -n "$version" ] && in_order $NEWEST "$version"; then
	newest_names >"$TMP/newest"
	expected+=("$TMP/newest")
fi
note "${#expected[@]} lists of names${version:+, of rdma-core $version}"
cp -r "$suite" "$TMP/tests"
gunzip -q "$TMP"/tests/*.gz 2>/dev/null

# some of the tests want them
huge_pages 16
devices_up 9000
limit 900 ip netns exec $A python3 "$SELF/pyverbs_run.py" "$TMP/tests" --dev $DEV_A \
	--gid "$(gid_index $A $DEV_A $IP_A)" >"$TMP/results" 2>&1
note "$(cut -d ' ' -f 1 "$TMP/results" | sort | uniq -c | tr -s ' \n' ' ')"

if [ -n "${UPDATE:-}" ]; then
	{
		echo "# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB"
		echo "# Tests of rdma-core 56.1 that pass on $DRIVER $(uname -r); made by UPDATE=1 DRIVER=$DRIVER pyverbs.sh"
		sed -n 's/^pass //p' "$TMP/results" | sort
	} >"$UPDATE"
fi

is_expected() { grep -qxhF "$1" "${expected[@]}"; }
# waits_for NAME : the feature that this driver does not have yet
waits_for() { [ "$DRIVER" = sroce ] && sed -n "s/^${1//./\\.} //p" "$SELF/pyverbs_waiting" | grep .; }

while read -r word name reason; do
	name=${name%:}
	case $word in
	pass)
		ktap_pass "$name"
		waits_for "$name" >/dev/null && note "$name passes: take it out of pyverbs_waiting"
		;;
	fail)
		# rdma_rxe itself: a failure that is known, because the test is not in its list
		if [ "$DRIVER" = rxe ] && ! is_expected "$name"; then
			ktap_skip "$name" "fails on rxe: $reason"
		else
			ktap_fail "$name: $reason"
		fi
		;;
	skip)
		if feature=$(waits_for "$name"); then
			ktap_skip "$name" "waits for $feature"
		elif is_expected "$name"; then
			ktap_fail "$name: skipped: $reason"
		else
			ktap_skip "$name" "$reason"
		fi
		;;
	esac
done <"$TMP/results"

# is_of_suite NAME : has the suite a test of this name? Another one than the lists' need not have them all
is_of_suite() {
	[ -z "${PYVERBS:-}" ] || { [ "$version" = $NEWEST ] && grep -qxF "$1" "$TMP/newest"; }
}
# neither passed nor failed nor skipped
while read -r name; do
	grep -qE "^[a-z]+ $name(:|\$)" "$TMP/results" && continue
	if is_of_suite "$name"; then ktap_fail "$name: was not run"; else note "$name: not in this suite"; fi
done < <(grep -hv '^#' "${expected[@]}")
# The suite takes any number for a speed
speed=$(ip netns exec $A python3 -c "import pyverbs.device as d; print(d.Context(name='$DEV_A').query_port_speed(1))" 2>/dev/null)
if [ -n "$speed" ]; then
	wanted=$(ip netns exec $A cat /sys/class/net/veth0/speed)
	note "speed of the port: $speed, of its netdev: $wanted Mb/s"
	[ $((speed * 100)) -eq "$wanted" ]
	result $? "the port's speed is its netdev's"
fi
note "why tests were skipped:"
sed -n 's/^skip [^ ]*: //p' "$TMP/results" | sort | uniq -c | sort -rn | sed 's/^/# /'
ktap_end
