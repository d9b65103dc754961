# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034
# SMC-R: a TCP program whose data goes over RDMA, with its server. Sourced, never run, after lib.sh.

target_modules="smc" target_programs=python3
initiator_modules=$target_modules initiator_programs=$target_programs

smc_talk() { python3 "$SELF/storage/smc_talk.py" "$@"; }

target_up() { server_start python3 "$SELF/storage/smc_talk.py" serve "$TGT"; }

target_down() { server_stop; }

target_again() { target_down && target_up; }

talk_all() {
	check "20 MB to and fro, checksums" 90 smc_talk run "$INI" "$TGT" 20000000
	notes <"$TMP/out"
	check "ten connections at once" 120 smc_talk run "$INI" "$TGT" 1000000 10
}

# How many connections have fallen back to TCP, both ends counted; and why
fallbacks() { smc_talk fallbacks; }

# fallbacks_at_most N : that data did not go over TCP is seen from what the kernel counts
fallbacks_at_most() {
	local n
	n=$(fallbacks)
	[ -n "$n" ] && [ "${n%% *}" -le "$1" ]
	result $? "connections that fell back to TCP: $n (at most $1)"
}

# The initiator's device has gone and come back. The target does not know: its link group lives until somebody uses it,
# which is the first connection. That may fall back, and whatever comes before the retries are exceeded; later
# ones may not.
talk_again() {
	local n
	check "the first connection after that" 120 smc_talk run "$INI" "$TGT" 1000
	sleep $((10 * SLOW))
	n=$(fallbacks)
	check "20 MB to and fro after that" 90 smc_talk run "$INI" "$TGT" 20000000
	fallbacks_at_most "${n%% *}"
}
