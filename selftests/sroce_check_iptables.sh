#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# sroce-check and rules that iptables has loaded, by nf_tables and by the kernel's older tables: what it says of them, from
# what iptables-save prints, is what the kernel does with a datagram for port 4791. Wants iptables, as "tools.packages" says
# for lab-with.
. "$(dirname "$0")/lib.sh"
. "$SELF/checked.sh"

command -v iptables-nft-restore >/dev/null && command -v iptables-legacy-restore >/dev/null || bail "iptables is not installed"
trap finish EXIT
devices_up 9000

# --- what the kernel does -----------------------------------------------------------------------------------

# What no RoCE packet is long enough for is counted as malformed, if it comes so far
# shellcheck disable=SC2016 # for the inner shell
send() { in_ns "$1" bash -c 'for i in 1 2 3; do echo -n "8 bytes." >"/dev/udp/$0/4791"; done' "$2" 2>/dev/null; }
malformed() { counter "$1" "$2" rx_malformed_packets; }
# kernel FAMILY WAY : accept or drop, of what comes to host A (in) or leaves it (out)
kernel() {
	local from=$B to=$A dev=$DEV_A address=$IP_A before try
	[ "$2" = in ] || from=$A to=$B dev=$DEV_B address=$IP_B
	[ "$1" = ip ] || { [ "$2" = in ] && address=$IP6_A || address=$IP6_B; }
	before=$(malformed $to $dev)
	send $from $address
	for try in 1 2; do
		sleep "0.$try"
		[ "$(malformed $to $dev)" -gt "$before" ] && echo accept && return
	done
	echo drop
}

# --- what sroce-check says --------------------------------------------------------------------------------------

# said FAMILY WAY : accept, drop, few or some, of what was found last
said() {
	local family=IPv4 way=into
	[ "$1" = ip ] || family=IPv6
	[ "$2" = in ] || way="out of"
	awk -v pattern="RoCE packets.* $way veth0 [(].*$family" '
		$3 == "firewall" && $0 ~ pattern { said = /some peers only/ ? "few" : /of some peers/ ? "some" : "drop" }
		$3 == "firewall" && /not all that a firewall may do is known/ { unknown = 1 }
		END { print said ? said : unknown ? "unknown" : "accept" }' "$TMP/found"
}
# walls : what sroce-check finds about the firewall, and nothing else: an emulated machine takes long to start Python
coproc FINDER { exec ip netns exec $A python3 -c 'import sys
sys.path.insert(0, sys.argv[1])
from sroce_tools import device, firewall, rdma
for _ in sys.stdin:
    for one in vars(firewall).values():
        getattr(one, "cache_clear", int)()
    for one in rdma.devices():
        if one.name == sys.argv[2]:
            for found in device.Checks(one).walls():
                print(found.level, found.subject.replace(" ", "_"), found.check, found.text)
    print("that is all", flush=True)' "$SELF/../tools/host" $DEV_A 2>"$TMP/errors"; }
walls() {
	local line
	echo >&"${FINDER[1]}"
	: >"$TMP/found"
	while read -r -t $((60 * SLOW)) line <&"${FINDER[0]}" && [ "$line" != "that is all" ]; do echo "$line"; done >"$TMP/found"
	[ "$line" = "that is all" ] || bail "nothing is found any more: $(tail -n 1 "$TMP/errors")"
}
# judged NAME FAMILY WAY EXPECTED : it is said, and so it is: "few" lets host B's pass, "some" does not
judged() {
	local answer truth expected=$4
	walls
	answer=$(said "$2" "$3")
	truth=$(kernel "$2" "$3")
	[ "$expected" != few ] || expected=accept
	[ "$expected" != some ] || expected=drop
	[ "$answer" = "$4" ] && [ "$truth" = "$expected" ]
	set -- $? "$@"
	[ "$1" -eq 0 ] || { grep -E '^[^ ]+ [^ ]+ firewall ' "$TMP/found" | notes; notes 20 <"$TMP/rules"; }
	result "$1" "$kind: $2, $3, $4: said: $answer, and the kernel: $truth"
}
# rules NAME FAMILY WAY EXPECTED : load what is on standard input, for iptables-restore, look, and let it go again
rules() {
	local program=iptables-$kind
	[ "$2" = ip ] || program=ip6tables-$kind
	cat >"$TMP/rules"
	if in_ns $A "$program-restore" <"$TMP/rules" 2>"$TMP/errors"; then
		judged "$@"
	else
		ktap_fail "$kind: $1: $(tail -n 1 "$TMP/errors")"
	fi
	printf '*%s\nCOMMIT\n' filter nat mangle raw | in_ns $A "$program-restore"
}
# filter WAY-OF-INPUT WAY-OF-OUTPUT RULE... : a table of these
filter() {
	printf '*filter\n:INPUT %s [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT %s [0:0]\n' "$1" "$2"
	printf '%s\n' "${@:3}" COMMIT
}
# other TABLE CHAIN RULE...
other() {
	printf '*%s\n:%s ACCEPT [0:0]\n' "$1" "$2"
	printf '%s\n' "${@:3}" COMMIT
}

usual=("-A INPUT -i lo -j ACCEPT" "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT" "-A INPUT -p icmp -j ACCEPT"
	"-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT")
usual6=("-A INPUT -i lo -j ACCEPT" "-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT" "-A INPUT -p ipv6-icmp -j ACCEPT")

cases() {
	rules "no rules" ip in accept <<<"$(filter ACCEPT ACCEPT)"
	rules "a host's usual ones" ip in drop <<<"$(filter DROP ACCEPT "${usual[@]}")"
	rules "a host's usual ones, outwards" ip out accept <<<"$(filter DROP ACCEPT "${usual[@]}")"
	rules "with the port" ip in accept <<<"$(filter DROP ACCEPT "${usual[@]}" "-A INPUT -p udp -m udp --dport 4791 -j ACCEPT")"
	rules "with another port" ip in drop <<<"$(filter DROP ACCEPT "${usual[@]}" "-A INPUT -p udp -m udp --dport 4792 -j ACCEPT")"
	rules "with several ports" ip in accept \
		<<<"$(filter DROP ACCEPT "${usual[@]}" "-A INPUT -p udp -m multiport --dports 53,4700:4800 -j ACCEPT")"
	rules "by its name" ip in accept <<<"$(filter DROP ACCEPT "-A INPUT -i veth+ -m comment --comment \"it's \\\"mine\\\" -j DROP\" -j ACCEPT")"
	rules "by any but another name" ip in accept <<<"$(filter DROP ACCEPT "-A INPUT ! -i eth1 -j ACCEPT")"
	rules "for one peer" ip in few <<<"$(filter DROP ACCEPT "-A INPUT -s $IP_B/32 -p udp -j ACCEPT")"
	rules "for all but one" ip in some <<<"$(filter ACCEPT ACCEPT "-A INPUT -s $IP_B/32 -j DROP")"
	rules "to an address" ip in drop <<<"$(filter ACCEPT ACCEPT "-A INPUT -m iprange --dst-range 10.98.0.0-10.98.0.9 -j DROP")"
	rules "all that is not TCP" ip in drop <<<"$(filter ACCEPT ACCEPT "-A INPUT ! -p tcp -j REJECT --reject-with icmp-port-unreachable")"
	rules "chains" ip in accept <<<"$(filter DROP ACCEPT ":x - [0:0]" ":y - [0:0]" "-A INPUT -j x" "-A x -p tcp -j DROP" "-A x -g y" \
		"-A y -p udp -m udp --dport 4791 -j RETURN" "-A y -j DROP" "-A INPUT -j ACCEPT")"
	rules "what is written down goes on" ip in drop <<<"$(filter ACCEPT ACCEPT "-A INPUT -p udp -j LOG --log-prefix \"-j ACCEPT \"" "-A INPUT -p udp -j DROP")"
	rules "addresses of this host" ip in drop <<<"$(filter ACCEPT ACCEPT "-A INPUT -m addrtype --dst-type LOCAL -m pkttype --pkt-type unicast -p udp -j DROP")"
	rules "outwards" ip out drop <<<"$(filter ACCEPT ACCEPT "-A OUTPUT -o veth0 -p udp -m udp --dport 4000:5000 -j DROP")"
	rules "a policy outwards" ip out drop <<<"$(filter ACCEPT DROP "-A OUTPUT -p tcp -j ACCEPT")"
	rules "a mark that is not there" ip in drop <<<"$(filter ACCEPT ACCEPT "-A INPUT -m mark ! --mark 0x1/0xff -j DROP")"
	rules "Docker's rule for a container's address" ip in accept <<<"$(other raw PREROUTING "-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP")"
	rules "such a rule for its own" ip in drop <<<"$(other raw PREROUTING "-A PREROUTING -d $IP_A/32 ! -i docker0 -j DROP")"
	rules "what is sent elsewhere" ip in drop <<<"$(other nat PREROUTING "-A PREROUTING -p udp -m udp --dport 4791 -j REDIRECT --to-ports 4000")"
	rules "IPv6: usual ones" ip6 in drop <<<"$(filter DROP ACCEPT "${usual6[@]}")"
	rules "IPv6: with the port" ip6 in accept <<<"$(filter DROP ACCEPT "${usual6[@]}" "-A INPUT -p udp -m udp --dport 4791 -j ACCEPT")"
	rules "IPv6: an extension header" ip6 in accept <<<"$(filter ACCEPT ACCEPT "-A INPUT -m frag --fragid 0 -j DROP")"
	rules "IPv6: outwards" ip6 out drop <<<"$(filter ACCEPT ACCEPT "-A OUTPUT -d $IP6_B/128 -p udp -j DROP" "-A OUTPUT -p udp -j REJECT")"
}

for kind in nft legacy; do
	cases
done

checked $A $DEV_A
finds "where all rules are gone" ok firewall "4791 in and out"

# Of both kinds at once, each counts
kind=legacy
filter ACCEPT ACCEPT "-A INPUT -p udp -j ACCEPT" | in_ns $A iptables-nft-restore
filter DROP ACCEPT "${usual[@]}" >"$TMP/rules"
in_ns $A iptables-legacy-restore <"$TMP/rules"
judged "dropped by the older tables, beside those of nf_tables" ip in drop

# without PATTERN : where no program of such a name can be started
# shellcheck disable=SC2016 # for the inner shell
without() {
	limit 150 in_ns $A unshare -m sh -c 'for file in $2; do mount --bind /dev/null "$(readlink -f "$file")"; done; exec python3 "$0" --json "$1"' \
		"$CHECK" $DEV_A "/usr/sbin/$1" >"$TMP/json" 2>"$TMP/errors"
	named
}
checked $A $DEV_A
finds "and the whole of sroce-check says so" fault firewall "drops RoCE packets into veth0 (IPv4; iptables"
without "xtables-*-multi"
finds "rules, and no program that shows them" info firewall "there are rules of iptables, and no iptables-save to read them"
ktap_end
