# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # for those who source it
# What the tests of applications share. The two hosts of ../lib.sh look like two machines to programs that start others
# "on a host": each has a name of its own, and a remote shell that goes there. The lab has those programs by way of
# lab-with, which installs what the list "packages" says.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
APPS=$SELF/applications

# needs WHAT PROGRAM... : or nothing is tested
needs() {
	local what=$1 program
	shift
	for program; do
		command -v "$program" >/dev/null && continue
		ktap_skip "$what" "no $program"
		ktap_end
	done
}

# $TMP/at HOST COMMAND... : a command on one of the two hosts, as a remote shell would run it
printf '127.0.0.1 localhost\n%s host-a\n%s host-b\n' $IP_A $IP_B >"$TMP/hosts"
cat >"$TMP/at" <<END
#!/bin/bash
case \$1 in
host-a) where=$A ;;
host-b) where=$B ;;
*) echo "at: no host \$1" >&2; exit 255 ;;
esac
exec ip netns exec \$where unshare --uts --ipc bash -c \
	'hostname \$0 && mount --bind $TMP/hosts /etc/hosts && eval "\$*"' "\$@"
END
chmod +x "$TMP/at"

# over_wire MINIMUM COMMAND... : the command, and at least so many bytes from device to device each way ("A/B": so many from
# host A, and so many from host B)
over_wire() {
	local least_a=${1%/*} least_b=${1#*/} a b status
	shift
	a=$(counter $A $DEV_A rdma_tx_bytes) b=$(counter $B $DEV_B rdma_tx_bytes)
	"$@"
	status=$?
	a=$(($(counter $A $DEV_A rdma_tx_bytes) - a)) b=$(($(counter $B $DEV_B rdma_tx_bytes) - b))
	note "sent by RDMA: $a and $b bytes"
	[ $status -eq 0 ] && [ "$a" -ge "$least_a" ] && [ "$b" -ge "$least_b" ]
}

# application NAME SECONDS MINIMUM COMMAND... : passes when it succeeds, and has used the devices. A function limits what
# it starts itself, to $LIMIT seconds.
application() {
	local name=$1 LIMIT=$2 least=$3 start=$SECONDS status
	shift 3
	over_wire "$least" limit "$LIMIT" "$@" >"$TMP/application" 2>&1
	status=$?
	grep -a '^# sent by' "$TMP/application"
	[ $status -eq 0 ] || grep -av '^# sent by' "$TMP/application" | tr -cd '[:print:]\n' | notes 25
	[ $((SECONDS - start)) -lt 10 ] || note "took $((SECONDS - start)) s"
	result $status "$name"
}
