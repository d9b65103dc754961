# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""sroce_check_rules.py FOLDER : rules of nftables and iptables, and what sroce-check (in FOLDER) says of them.

Prints what program_verdicts() of lib.sh takes.
"""
import sys

sys.path.insert(0, sys.argv[1])
from sroce_tools import firewall  # noqa: E402  pylint: disable=wrong-import-position

UFW = """
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:before - [0:0]
:user - [0:0]
-A INPUT -j before
-A INPUT -j user
-A INPUT -j LOG --log-prefix "[UFW BLOCK] "
-A before -i lo -j ACCEPT
-A before -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A before -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A user -p tcp -m tcp --dport 22 -j ACCEPT
%s
COMMIT
"""
OPEN = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n%s\nCOMMIT\n"

IPTABLES = [
    ("nothing but policies that accept", OPEN % "", True, "accept"),
    ("ufw without the port", UFW % "", True, "drop"),
    ("ufw without the port, outwards", UFW % "", False, "accept"),
    ("ufw allow 4791/udp", UFW % "-A user -p udp -m udp --dport 4791 -j ACCEPT", True, "accept"),
    ("ufw allow 4791/tcp", UFW % "-A user -p tcp -m tcp --dport 4791 -j ACCEPT", True, "drop"),
    ("several ports", UFW % "-A user -p udp -m multiport --dports 53,4700:4800 -j ACCEPT", True, "accept"),
    ("other ports", UFW % "-A user -p udp -m multiport --dports 53,4792: -j ACCEPT", True, "drop"),
    ("from somebody", UFW % "-A user -s 10.0.0.0/8 -p udp -j ACCEPT", True, "few"),
    ("not from somebody", OPEN % "-A INPUT -s 10.0.0.0/8 -j DROP", True, "some"),
    ("Kubernetes' own rules", OPEN % ":KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\n-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 "
     "-m comment --comment \"block incoming localnet connections\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n"
     "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP", True, "accept"),
    ("by this netdev", UFW % "-A user -i eth0 -j ACCEPT", True, "accept"),
    ("by netdevs like this", UFW % "-A user -i eth+ -j ACCEPT", True, "accept"),
    ("by another netdev", UFW % "-A user -i eth1 -j ACCEPT", True, "drop"),
    ("by any but another", UFW % "-A user ! -i eth1 -j ACCEPT", True, "accept"),
    ("a comment with the name of an option", UFW % '-A user -m comment --comment "-j ACCEPT" -p tcp -j ACCEPT', True, "drop"),
    ("all that is not TCP is rejected", OPEN % "-A INPUT ! -p tcp -j REJECT --reject-with icmp-port-unreachable", True, "drop"),
    ("it returns before it is dropped", OPEN % ":x - [0:0]\n-A INPUT -j x\n-A x -p udp -j RETURN\n-A x -j DROP", True, "accept"),
    ("a chain that is gone to does not come back", OPEN % ":x - [0:0]\n:y - [0:0]\n-A INPUT -j x\n-A x -g y\n-A x -j DROP", True,
     "accept"),
    ("ufw's way to what is not for this host", OPEN % ":nl - [0:0]\n-A INPUT -j nl\n-A nl -m addrtype --dst-type LOCAL -j RETURN\n-A nl -j DROP",
     True, "accept"),
    ("whoever listens to a queue", OPEN % "-A INPUT -j NFQUEUE --queue-num 1 --queue-bypass", True, "some"),
    ("a comment that looks like an option", UFW % '-A user -p udp -m udp --dport 4791 -m comment --comment "- RoCE" -j ACCEPT', True, "accept"),
    ("a comment of two lines", UFW % '-A user -m comment --comment "one\ntwo" -p udp -j ACCEPT', True, "drop"),
    ("dropped in another table", "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp --dport 4791 -j DROP\nCOMMIT\n" + OPEN % "",
     True, "drop"),
    ("a loop that the kernel would not take", OPEN % ":x - [0:0]\n-A INPUT -j x\n-A x -j x", True, "accept"),
]


def nft(*expressions, policy="accept", hook="input", family="inet", more=()):
    """A ruleset with one base chain, as nft would print it."""
    chain = {"family": family, "table": "t", "name": "c", "type": "filter", "hook": hook, "prio": 0, "policy": policy}
    rules = [{"rule": {"family": family, "table": "t", "chain": "c", "expr": list(one)}} for one in expressions]
    return {"nftables": [{"metainfo": {}}, {"table": {"family": family, "name": "t"}}, {"chain": chain}, *more, *rules]}


def match(left, right, op="=="):
    """One match."""
    return {"match": {"op": op, "left": left, "right": right}}


ACCEPT, DROP = {"accept": None}, {"drop": None}
DPORT = {"payload": {"protocol": "udp", "field": "dport"}}
STATE = {"ct": {"key": "state"}}
SET = {"set": {"family": "inet", "table": "t", "name": "ports", "type": "inet_service", "elem": [53, 4791]}}
ELEMENTS = {"set": {"family": "inet", "table": "t", "name": "ports", "elem": [{"elem": {"val": 4791, "timeout": 9}}]}}

# 2 to the 14th ways through them
MANY = nft([{"jump": {"target": "c0"}}], policy="drop", more=[
    {"rule": {"family": "inet", "table": "t", "chain": f"c{i}", "expr": [{"jump": {"target": f"c{i + 1}"}}]}}
    for i in range(14) for _ in range(40)])

NFTABLES = [
    ("no rule", nft(), True, "accept"),
    ("a policy that drops", nft(policy="drop"), True, "drop"),
    ("a policy that drops, of what is forwarded", nft(policy="drop", hook="forward"), True, "accept"),
    ("the port", nft([match(DPORT, 4791), ACCEPT], policy="drop"), True, "accept"),
    ("another port", nft([match(DPORT, 4790), ACCEPT], policy="drop"), True, "drop"),
    ("any but the port", nft([match(DPORT, 4791, "!="), ACCEPT], policy="drop"), True, "drop"),
    ("ports from one to another", nft([match(DPORT, {"range": [4000, 5000]}), DROP]), True, "drop"),
    ("a set with a name", nft([match(DPORT, "@ports"), ACCEPT], policy="drop", more=[SET]), True, "accept"),
    ("a set with a name and times", nft([match(DPORT, "@ports"), ACCEPT], policy="drop", more=[ELEMENTS]), True, "accept"),
    ("a set that there is none of", nft([match(DPORT, "@ports"), DROP]), True, "some"),
    ("the port of any protocol", nft([match({"payload": {"protocol": "th", "field": "dport"}}, 4791), DROP]), True, "drop"),
    ("established", nft([match(STATE, ["established", "related"], "in"), ACCEPT], policy="drop"), True, "drop"),
    ("new", nft([match(STATE, ["new"], "in"), ACCEPT], policy="drop"), True, "accept"),
    ("a verdict map of states", nft([{"vmap": {"key": STATE, "data": {"set": [["established", ACCEPT], ["new", DROP]]}}}]), True, "drop"),
    ("an address", nft([match({"payload": {"protocol": "ip", "field": "saddr"}}, "10.0.0.1"), DROP]), True, "some"),
    ("an address of the other family", nft([match({"payload": {"protocol": "ip6", "field": "saddr"}}, "fd::1"), DROP]), True, "accept"),
    ("UDP in a set of protocols", nft([match({"meta": {"key": "l4proto"}}, {"set": ["tcp", "udp"]}), DROP]), True, "drop"),
    ("the netdev, for what comes in by it", nft([match({"meta": {"key": "iifname"}}, "eth0"), DROP]), True, "drop"),
    ("the netdev that it leaves by, for what comes in", nft([match({"meta": {"key": "oifname"}}, "eth0"), DROP]), True, "accept"),
    ("bits of TCP", nft([match({"&": [{"payload": {"protocol": "tcp", "field": "flags"}}, 2]}, 0, "!="), DROP]), True, "accept"),
    ("so many connections", nft([match(DPORT, 4791), {"ct count": {"val": 100, "inv": True}}, DROP]), True, "some"),
    ("a set with a limit", nft([{"set": {"op": "add", "elem": "x", "set": "@f", "stmt": [{"limit": {"rate": 10}}]}}, DROP]), True, "some"),
    ("a target of iptables", nft([match(DPORT, 4791), {"xt": {"type": "target", "name": "REJECT"}}]), True, "some"),
    ("a chain without a name", nft([match(DPORT, 4791), "jump { drop; match }"]), True, "some"),
    ("counted and logged", nft([{"counter": {"packets": 1}}, {"log": {"prefix": "x"}}, DROP]), True, "drop"),
    ("a table that sleeps", {"nftables": [{"table": {"family": "inet", "name": "t", "flags": ["dormant"]}}, *nft(policy="drop")["nftables"][2:]]},
     True, "accept"),
    ("a limit", nft([{"limit": {"rate": 5, "per": "second"}}, DROP]), True, "some"),
    ("a way back, as firewalld asks for", nft([match({"fib": {"result": "oif", "flags": ["saddr", "mark", "iif"]}}, False), DROP]), True,
     "accept"),
    ("what was translated", nft([match({"ct": {"key": "status"}}, "dnat", "in"), ACCEPT], policy="drop"), True, "drop"),
    ("chains that jump to each other, many times", MANY, True, "drop"),
    ("rejected", nft([match(DPORT, 4791), {"reject": {"type": "icmp"}}]), True, "drop"),
    ("a table of the other family", nft(policy="drop", family="ip6"), True, "accept"),
    ("outwards", nft([match(DPORT, 4791), DROP], hook="output"), False, "drop"),
    ("outwards, where only the way in is closed", nft(policy="drop"), False, "accept"),
]


def main():
    """All cases."""
    wrong = 0
    for kind, cases in (("iptables", IPTABLES), ("nftables", NFTABLES)):
        bases_of = firewall.iptables_bases if kind == "iptables" else firewall.nft_bases
        for name, rules, incoming, expected in cases:
            verdict, _ = firewall.judge(bases_of(rules, firewall.Packet("ip", incoming, "eth0")))
            wrong += verdict != expected
            print(f"ok: {kind}, {name}" if verdict == expected else f"WRONG: {kind}, {name}\n  {verdict}, not {expected}")
    for name, saved, expected in (
            ("iptables' own table", "# Generated by iptables-save v1.8.9 (nf_tables) on x\n*filter\nCOMMIT\n", {"filter"}),
            ("a table of that name which is not", "# Generated by iptables-save v1.8.9 (nf_tables) on x\n*filter\nCOMMIT\n"
             "# Table `filter' contains incompatible base-chains, use 'nft' tool to list them.\n", set()),
            ("legacy iptables has none in nftables", "# Generated by iptables-save v1.8.9 on x\n*filter\nCOMMIT\n", set())):
        found = firewall.tables_of_iptables(saved)
        wrong += found != expected
        print(f"ok: {name}" if found == expected else f"WRONG: {name}\n  {found}")
    print(f"{wrong} wrong")


main()
