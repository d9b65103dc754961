#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A process of 32 bits and one of 64 on the same 64-bit kernel, each as the other's server: the layout of what they share with the
# kernel does not depend on the size of a pointer or on how a 64-bit number is aligned (i386: to 4 bytes).
#
# OTHER_BIN=FOLDER has the programs of $BIN once more, for the other size.
. "$(dirname "$0")/lib.sh"

VERIFY=$(program verify) || bail "verify was not built"
rounds=4
[ "$SET" = full ] && rounds=30

# bits PROGRAM : of its pointers, as the head of the file tells
bits() { echo $((32 * $(od -An -tu1 -j4 -N1 "$1"))); }

# between SERVER CLIENT : by their folders
between() {
	local server=$1 client=$2 what
	what="server of $(bits "$server/verify") bits, client of $(bits "$client/verify")"
	while IFS=: read -r name options; do
		# shellcheck disable=SC2086 # words
		pair "$what: $name" 120 "$server/verify -d $DEV_A -i $IP_A" \
			"$client/verify -d $DEV_B -i $IP_B -n $rounds $VERIFY_OPTIONS $options $IP_A"
		note "$(tail -n 1 "$TMP/client")"
	done <<-END
		every operation:
		all path MTUs: -M all -q 5
		events: -e
		small messages: -m 300 -b 128 -q 16
		large messages: -m 9000000 -q 1 -b 8 -n 2
	END
	pair "$what: datagrams" 60 "$server/verify_ud -d $DEV_A -i $IP_A" "$client/verify_ud -d $DEV_B -i $IP_B -n 400 $IP_A"
}

here=${VERIFY%/verify}
if [ ! -x "${OTHER_BIN:-}/verify" ]; then
	ktap_skip "a process of each size" "OTHER_BIN has no programs"
	ktap_end
fi
[ "$(bits "$VERIFY")" != "$(bits "$OTHER_BIN/verify")" ]
result $? "the programs are of different sizes"
devices_up 9000
between "$here" "$OTHER_BIN"
between "$OTHER_BIN" "$here"
ktap_end
