# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What a test of applications takes for lib.sh when its two hosts are two machines (two_machines.sh): the usual one, of which
# what makes hosts is another here.
case $TEST in
applications/*) . "$(dirname "${BASH_SOURCE[0]}")/../applications/lib.sh" ;;
*) . "$(dirname "${BASH_SOURCE[0]}")/../lib.sh" ;;
esac
# Of the tests, both machines see the files; of programs, each has its own
unset TMPDIR

# Everything that the tests want is there, or should be
ktap_skip() { ktap_fail "$1: skipped: ${*:2}"; }

hosts_up() {
	local mtu=${1:-9000} ns n=0
	hosts_down
	for ns in $A $B; do
		n=$((n + 1))
		ip -n "$ns" link set veth0 mtu "$mtu" && ip -n "$ns" addr add 10.98.0.$n/24 dev veth0 &&
			ip -n "$ns" addr add fd98::$n/64 dev veth0 nodad || bail "no address on machine $n"
	done
}

hosts_down() {
	link_del $A $DEV_A 2>/dev/null
	link_del $B $DEV_B 2>/dev/null
	for ns in $A $B; do
		ip -n "$ns" addr flush dev veth0 scope global
	done
	return 0
}
