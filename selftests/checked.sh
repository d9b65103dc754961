# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # "status" is for those who source it
# What sroce-check finds, for tests of it. Sourced after lib.sh.

CHECK=$SELF/../tools/host/sroce-check
[ "$DRIVER" = sroce ] || bail "sroce-check is about sroce"
[ -x "$CHECK" ] || bail "no $CHECK"
command -v python3 >/dev/null || bail "no python3"
export PYTHONDONTWRITEBYTECODE=1

# checked NAMESPACE ARGUMENT... : what it finds there, a line each: level, subject, check, text
checked() {
	local ns=$1
	shift
	limit 150 in_ns "$ns" python3 "$CHECK" --json "$@" >"$TMP/json" 2>"$TMP/errors"
	status=$?
	named
}
# named : the findings in $TMP/json as lines in $TMP/found
named() {
	python3 - "$TMP/json" >"$TMP/found" <<-'END'
		import json, sys
		for one in json.load(open(sys.argv[1]))["findings"]:
		    print(one["level"], one["subject"].replace(" ", "_"), one["check"], one["text"])
	END
}
# finds NAME LEVEL CHECK TEXT : such a line is among what was found last
finds() {
	awk -v level="$2" -v check="$3" -v text="$4" '$1 == level && $3 == check && index($0, text) { found = 1 } END { exit !found }' "$TMP/found"
	set -- $? "$1"
	[ "$1" -eq 0 ] || notes 20 <"$TMP/found"
	result "$1" "$2"
}
# finds_no NAME LEVEL SUBJECT : no line of this level about this subject
finds_no() {
	! grep "^$2 [^ ]*$3" "$TMP/found"
	result $? "$1"
}
