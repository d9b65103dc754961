#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# gloo, the collectives of PyTorch, over its ibverbs transport: the program gloo.cc, one rank on each of two hosts. Gloo before
# May 2025, and so Debian 13's, ends a collective with an exception when the peer was faster than its own completions
# (Documentation/applications.md). GLOO names a folder with a newer one (gloo_newest), which is installed elsewhere.
. "$(dirname "$0")/lib.sh"
needs "gloo" g++
if [ -z "${GLOO:-}" ]; then
	version=$(dpkg-query -Wf '${Version}' libgloo-dev 2>/dev/null)
	dpkg --compare-versions "$version" ge 0.0~git20250501 2>/dev/null || {
		ktap_skip "gloo" "GLOO names no folder with a gloo of May 2025 or newer${version:+, and libgloo-dev is $version}"
		ktap_end
	}
fi

devices_up 9000
g++ -std=c++17 -O2 -Wall ${GLOO:+-isystem "$GLOO/usr/include" -L"$GLOO/usr/lib"} -o "$TMP/gloo" "$APPS/gloo.cc" \
	-lgloo -libverbs >"$TMP/cc" 2>&1 || { notes <"$TMP/cc"; bail "g++"; }
turns=2
[ "$SET" = full ] && turns=10
[ -n "$SHORT" ] && turns=1
for ((turn = 1; turn <= turns; turn++)); do
	mkdir "$TMP/meet.$turn"
	rank() { echo "${GLOO:+env LD_LIBRARY_PATH=$GLOO/usr/lib }$TMP/gloo $1 $TMP/meet.$turn $2 $(gid_index "$3" "$2" "$4")"; }
	# Neither of the two waits for the other one to listen: they meet by files
	READY=true over_wire 8000000 pair "two ranks, $turn" 120 "$(rank 0 $DEV_A $A $IP_A)" "$(rank 1 $DEV_B $B $IP_B)" ||
		result 1 "two ranks, $turn: by RDMA"
	verdicts "rank 0, $turn" "$TMP/server"
	verdicts "rank 1, $turn" "$TMP/client"
done
ktap_end
