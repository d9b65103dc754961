#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# two_machines.sh NUMBER NETDEV CONTROL_IP TEST : one of the tests of applications, whose two hosts are two machines instead
# of two network namespaces. It is run at the same time on both machines, with a link between them that is the test's own, by
# NETDEV, and another way by which number 1 reaches number 2 at CONTROL_IP. Number 1 is host A, runs the test and prints its
# results; number 2 is host B, and does what it is told there (elsewhere.py). TMPDIR is a folder that both see at the same
# place, KEY a file with the same secret on both. In the lab lab-pair-applications gives it what it wants.
number=${1:?two_machines.sh NUMBER NETDEV CONTROL_IP TEST} netdev=$2 control=$3 TEST=${4:?no test}
here=$(cd "$(dirname "$0")" && pwd)
PORT=18630

# own_link : the test's link with the name that it has in the tests, and without addresses. A queue that drops what has waited
# for a tenth of a second (fq_codel) is not for an emulated machine: see lab-pair-sroce.
own_link() {
	ip link set "$netdev" down && ip link set "$netdev" name veth0 &&
		ip addr flush dev veth0 && ip link set veth0 up && tc qdisc replace dev veth0 root pfifo limit 10000
}

own_link || exit
[ "$number" = 1 ] || exec python3 -IS "$here/elsewhere.py" serve "$control" $PORT "$KEY"

# shellcheck source=../lib.sh
. "$here/../lib.sh"
export TEST SLOW SET SHORT
# What the tests do in a namespace, "ip netns exec NAMESPACE COMMAND" and "ip -n NAMESPACE ...", is done on the machine that
# stands for it. (A command has its own mounts, as it would have there.)
mkdir -p "$TMP/bin"
elsewhere="python3 -IS $here/elsewhere.py run $control $PORT $KEY"
cat >"$TMP/bin/ip" <<-SCRIPT
	#!/bin/bash
	case "\$1 \$2 \$3" in
	"netns exec $A") exec unshare --mount "\${@:4}" ;;
	"netns exec $B") exec $elsewhere unshare --mount "\${@:4}" ;;
	"-n $A "*) exec $(command -v ip) "\${@:3}" ;;
	"-n $B "*) exec $elsewhere $(command -v ip) "\${@:3}" ;;
	esac
	exec $(command -v ip) "\$@"
SCRIPT
chmod +x "$TMP/bin/ip"
export PATH=$TMP/bin:$PATH

wait_for 60 on_b true || bail "the other machine is not there"
note "$TEST: $(uname -r), and $(on_b uname -r)"
# The test is read by a shell that was not started for it, so that "lib.sh" beside this file is the one that it takes.
# shellcheck disable=SC2016 # for the inner shell
TMPDIR=$TMP timeout -k 20 $((600 * SLOW)) bash -c '. "$1"' "$here/test" "$SELF/$TEST.sh" 2>&1 |
	tee "$TMP/results" | sed -u 's/^/    /'
status=${PIPESTATUS[0]}
grep -q '^# Totals: ' "$TMP/results" || note "ended with status $status and without its totals"
[ "$status" -eq 0 ] && grep -q '^# Totals: ' "$TMP/results"
result $? "$TEST on two machines"
check "the module can be removed" 30 rmmod "$(driver_module)"
check "the other machine's, too" 30 in_ns $B rmmod "$(driver_module)"
$elsewhere
ktap_end
