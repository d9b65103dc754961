# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Every packet that comes to a host, looked at by icrc_check ($CHECK), a receiver that is not the driver. Sourced.

# marked NAME OPTIONS COMMAND... : all that comes to veth0 of either host while the command runs is right, and as the options
# of icrc_check say. To each of them comes something; with ONE_WAY=1 (datagrams) to host A at least.
marked() {
	local name=$1 options=$2 ns status packets bad=0 pids=()
	shift 2
	for ns in $A $B; do
		: >"$TMP/capture.$ns"
		# shellcheck disable=SC2086 # options
		ip netns exec "$ns" "$CHECK" -i veth0 -t 120 $options >"$TMP/capture.$ns" 2>&1 &
		pids+=($!)
		wait_for 5 grep -q capturing "$TMP/capture.$ns"
	done
	"$@"
	sleep 0.2
	kill "${pids[@]}"
	for ns in $A $B; do
		wait "${pids[0]}"
		status=$?
		pids=("${pids[@]:1}")
		packets=$(sed -n 's/^packets=\([0-9]*\) .*/\1/p' "$TMP/capture.$ns")
		note "at $ns: $(tail -n 1 "$TMP/capture.$ns")"
		# 4: some were not seen, which does not matter here
		{ [ $status -eq 0 ] || [ $status -eq 4 ]; } && [ "$packets" -gt 0 ] ||
			{ [ "$packets" = 0 ] && [ "$ns" = "$B" ] && [ -n "${ONE_WAY:-}" ]; } ||
			{ bad=1 && note "status $status" && notes 4 <"$TMP/capture.$ns"; }
	done
	result $bad "$name: every packet is marked so ($options)"
}
