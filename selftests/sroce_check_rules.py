# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""sroce_check_rules.py FOLDER : rules of nftables and iptables, and what sroce-check (in FOLDER) says of them.

Prints what program_verdicts() of lib.sh takes.
"""
import ipaddress
import sys

sys.path.insert(0, sys.argv[1])
# pylint: disable=wrong-import-position
from sroce_tools.firewall import names_of_tables  # noqa: E402
from sroce_tools.iptables import iptables_bases, tables_in_nftables  # noqa: E402
from sroce_tools.nftables import netdevs_of_chains, nft_bases  # noqa: E402
from sroce_tools.rules import Packet, verdict  # noqa: E402

OWN, OWN6 = ipaddress.ip_address("10.1.0.5"), ipaddress.ip_address("fd00::5")
IN, OUT = Packet("ip", True, "eth0", OWN), Packet("ip", False, "eth0", OWN)
IN6, OUT6 = Packet("ip6", True, "eth0", OWN6), Packet("ip6", False, "eth0", OWN6)
# For a VLAN above the device's netdev
VLAN_IN, VLAN_OUT = (one._replace(netdev="eth0.7", below=("eth0",)) for one in (IN, OUT))

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
RAW = "*raw\n:PREROUTING ACCEPT [0:0]\n%s\nCOMMIT\n"
OPEN = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n%s\nCOMMIT\n"

IPTABLES = [
    ("nothing but policies that accept", OPEN % "", IN, "accept"),
    ("ufw without the port", UFW % "", IN, "drop"),
    ("ufw without the port, outwards", UFW % "", OUT, "accept"),
    ("ufw allow 4791/udp", UFW % "-A user -p udp -m udp --dport 4791 -j ACCEPT", IN, "accept"),
    ("ufw allow 4791/tcp", UFW % "-A user -p tcp -m tcp --dport 4791 -j ACCEPT", IN, "drop"),
    ("several ports", UFW % "-A user -p udp -m multiport --dports 53,4700:4800 -j ACCEPT", IN, "accept"),
    ("other ports", UFW % "-A user -p udp -m multiport --dports 53,4792: -j ACCEPT", IN, "drop"),
    ("from somebody", UFW % "-A user -s 10.0.0.0/8 -p udp -j ACCEPT", IN, "few"),
    ("not from somebody", OPEN % "-A INPUT -s 10.0.0.0/8 -j DROP", IN, "some"),
    ("from nobody but somebody", OPEN % "-A INPUT ! -s 10.0.0.0/8 -p udp -m udp --dport 4791 -j DROP", IN, "few"),
    ("from nobody but those of a set", OPEN % "-A INPUT -m set ! --match-set peers src -j DROP", IN, "few"),
    ("from anybody but somebody", UFW % "-A user ! -s 10.0.0.0/8 -p udp -j ACCEPT", IN, "some"),
    ("what a mark that some rule makes does not save", "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s 10.0.0.0/8 -j MARK --set-xmark 0x1/0xff\n"
     "COMMIT\n" + OPEN % "-A INPUT -m mark ! --mark 0x1/0xff -j DROP", IN, "few"),
    ("Kubernetes' own rules", OPEN % ":KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\n-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 "
     "-m comment --comment \"block incoming localnet connections\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n"
     "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP", IN, "accept"),
    ("by this netdev", UFW % "-A user -i eth0 -j ACCEPT", IN, "accept"),
    ("by netdevs like this", UFW % "-A user -i eth+ -j ACCEPT", IN, "accept"),
    ("by another netdev", UFW % "-A user -i eth1 -j ACCEPT", IN, "drop"),
    ("by any but another", UFW % "-A user ! -i eth1 -j ACCEPT", IN, "accept"),
    ("a comment with the name of an option", UFW % '-A user -m comment --comment "-j ACCEPT" -p tcp -j ACCEPT', IN, "drop"),
    ("all that is not TCP is rejected", OPEN % "-A INPUT ! -p tcp -j REJECT --reject-with icmp-port-unreachable", IN, "drop"),
    ("it returns before it is dropped", OPEN % ":x - [0:0]\n-A INPUT -j x\n-A x -p udp -j RETURN\n-A x -j DROP", IN, "accept"),
    ("a chain that is gone to does not come back", OPEN % ":x - [0:0]\n:y - [0:0]\n-A INPUT -j x\n-A x -g y\n-A x -j DROP", IN,
     "accept"),
    ("ufw's way to what is not for this host", OPEN % ":nl - [0:0]\n-A INPUT -j nl\n-A nl -m addrtype --dst-type LOCAL -j RETURN\n-A nl -j DROP",
     IN, "accept"),
    ("whoever listens to a queue", OPEN % "-A INPUT -j NFQUEUE --queue-num 1 --queue-bypass", IN, "some"),
    ("a comment that looks like an option", UFW % '-A user -p udp -m udp --dport 4791 -m comment --comment "- RoCE" -j ACCEPT', IN, "accept"),
    ("a comment of two lines", UFW % '-A user -m comment --comment "one\ntwo" -p udp -j ACCEPT', IN, "accept"),
    ("a comment of two lines, of TCP", UFW % '-A user -m comment --comment "one\n-A user -j ACCEPT" -p tcp -j ACCEPT', IN, "drop"),
    ("dropped in another table", "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp --dport 4791 -j DROP\nCOMMIT\n" + OPEN % "",
     IN, "drop"),
    ("Docker's rule for a container's address", RAW % "-A PREROUTING -d 172.17.0.2/32 ! -i docker0 -j DROP" + OPEN % "", IN, "accept"),
    ("such a rule for the device's address", RAW % "-A PREROUTING -d 10.1.0.5/32 ! -i docker0 -j DROP" + OPEN % "", IN, "drop"),
    ("to the device's network", UFW % "-A user -d 10.1.0.0/16 -p udp -j ACCEPT", IN, "accept"),
    ("to any but the device's address", OPEN % "-A INPUT ! -d 10.1.0.5/32 -j DROP", IN, "accept"),
    ("from the device's address, outwards", OPEN % "-A OUTPUT -s 10.1.0.5/32 -j DROP", OUT, "drop"),
    ("from another address, outwards", OPEN % "-A OUTPUT -s 10.1.0.6/32 -j DROP", OUT, "accept"),
    ("to some peers, outwards", OPEN % "-A OUTPUT -d 10.1.0.6/32 -j DROP", OUT, "some"),
    ("to addresses from one to another", OPEN % "-A INPUT -m iprange --dst-range 10.1.0.4-10.1.0.6 -j DROP", IN, "drop"),
    ("to another IPv6 address", OPEN % "-A INPUT -d fd00::6/128 -j DROP", IN6, "accept"),
    ("to the device's IPv6 address", OPEN % "-A INPUT -d fd00::5/128 -j DROP", IN6, "drop"),
    ("out of a VLAN", OPEN % "-A OUTPUT -o eth0.7 -j DROP", VLAN_OUT, "drop"),
    ("into the netdev below a VLAN", OPEN % "-A INPUT -i eth0 -j DROP", VLAN_IN, "accept"),
    ("not tracked, and only what is tracked is dropped", RAW % "-A PREROUTING -p udp -m udp --dport 4791 -j CT --notrack" +
     UFW % "-A user -m conntrack --ctstate UNTRACKED -j ACCEPT", IN, "accept"),
    ("not tracked, where only new ones are let in", RAW % "-A PREROUTING -p udp -m udp --dport 4791 -j NOTRACK" +
     UFW % "-A user -m state --state NEW -j ACCEPT", IN, "drop"),
    ("of no connection, before there are any", RAW % "-A PREROUTING -m conntrack --ctstate INVALID -j DROP" + OPEN % "", IN, "drop"),
    ("of no connection, later", OPEN % "-A INPUT -m conntrack --ctstate INVALID -j DROP", IN, "accept"),
    ("other ports are not tracked", RAW % "-A PREROUTING -p udp -m udp --dport 53 -j CT --notrack" +
     UFW % "-A user -m conntrack --ctstate UNTRACKED -j ACCEPT", IN, "drop"),
    ("some are not tracked", RAW % "-A PREROUTING -s 10.2.0.0/16 -j CT --notrack" +
     UFW % "-A user -m conntrack --ctstate UNTRACKED -j ACCEPT", IN, "few"),
    ("all are tracked by a zone of their own", RAW % "-A PREROUTING -j CT --zone 3" + UFW % "-A user -m conntrack --ctstate NEW -j ACCEPT",
     IN, "accept"),
    ("a mark that another rule has made", "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -j MARK --set-xmark 0x1/0xff\nCOMMIT\n" +
     OPEN % "-A INPUT -m mark --mark 0x1/0xff -j DROP", IN, "some"),
    ("a mark that no packet has", OPEN % "-A INPUT -m mark --mark 0x1/0xff -j DROP", IN, "accept"),
    ("no mark", OPEN % "-A INPUT -m mark --mark 0x0/0xff -j DROP", IN, "drop"),
    ("answers of name servers", UFW % "-A user -p udp -m udp --sport 53 -j ACCEPT", IN, "drop"),
    ("from ports without privileges", UFW % "-A user -p udp -m udp --sport 1024:65535 --dport 4791 -j ACCEPT", IN, "accept"),
    ("what sockets wait for", OPEN % "-A INPUT -m socket -j DROP", IN, "some"),
    ("from whoever has no way back", OPEN % "-A INPUT -m rpfilter --validmark --invert -j DROP", IN, "accept"),
    ("what is not for this host", OPEN % "-A INPUT -m addrtype ! --dst-type LOCAL -j DROP", IN, "accept"),
    ("fragments", OPEN % "-A INPUT -f -j DROP", IN, "accept"),
    ("what processes of a user send", OPEN % "-A OUTPUT -m owner --uid-owner 0 -j DROP", OUT, "accept"),
    ("sent on to a container", "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 4791 -j DNAT --to-destination 172.17.0.2:4791\n"
     "COMMIT\n" + OPEN % "", IN, "drop"),
    ("another port is sent on", "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 53 -j DNAT --to-destination 172.17.0.2:53\n"
     "COMMIT\n" + OPEN % "", IN, "accept"),
    ("what a proxy takes", "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -m udp --dport 4791 -j TPROXY --on-port 9 --on-ip 0.0.0.0 "
     "--tproxy-mark 0x1/0x1\nCOMMIT\n" + OPEN % "", IN, "drop"),
    ("a target with options", UFW % "-A user -p udp -m udp --dport 4791 -j LOG --log-level 7\n-A user -p udp -j ACCEPT", IN, "accept"),
    ("a loop that the kernel would not take", OPEN % ":x - [0:0]\n-A INPUT -j x\n-A x -j x", IN, "accept"),
]


def nft(*expressions, policy="accept", hook="input", family="inet", more=(), name="c", dev=None, prio=0):
    """A ruleset with one base chain, as nft would print it."""
    chain = {"family": family, "table": "t", "name": name, "type": "filter", "hook": hook, "prio": prio, "policy": policy}
    chain.update({"dev": dev} if dev else {})
    rules = [{"rule": {"family": family, "table": "t", "chain": name, "expr": list(one)}} for one in expressions]
    return {"nftables": [{"metainfo": {}}, {"table": {"family": family, "name": "t"}}, {"chain": chain}, *more, *rules]}


def match(left, right, op="=="):
    """One match."""
    return {"match": {"op": op, "left": left, "right": right}}


def meta(key):
    """What the kernel knows of a packet."""
    return {"meta": {"key": key}}


def vmap(key, *elements):
    """A verdict map."""
    return {"vmap": {"key": key, "data": {"set": list(elements)}}}


SADDR, DADDR = ({"payload": {"protocol": "ip", "field": one}} for one in ("saddr", "daddr"))
ACCEPT, DROP = {"accept": None}, {"drop": None}
DPORT = {"payload": {"protocol": "udp", "field": "dport"}}
STATE = {"ct": {"key": "state"}}
SET = {"set": {"family": "inet", "table": "t", "name": "ports", "type": "inet_service", "elem": [53, 4791]}}
NOBODY = {"set": {"family": "inet", "table": "t", "name": "ports", "type": "ipv4_addr", "flags": ["timeout"]}}
# nft 1.0.6 names the netdevs of chains here, and not in JSON
CHAINS = """
table netdev t {
	chain i {
		type filter hook ingress device "eth1" priority filter; policy drop;
	}
	chain i2 {
		type filter hook ingress devices = { eth1, eth0 } priority filter; policy drop;
	}
	chain e {
		type filter hook egress device "eth0" priority filter; policy drop;
	}
	chain i3 {
	}
}
"""
ELEMENTS = {"set": {"family": "inet", "table": "t", "name": "ports", "elem": [{"elem": {"val": 4791, "timeout": 9}}]}}

# 2 to the 14th ways through them
MANY = nft([{"jump": {"target": "c0"}}], policy="drop", more=[
    {"rule": {"family": "inet", "table": "t", "chain": f"c{i}", "expr": [{"jump": {"target": f"c{i + 1}"}}]}}
    for i in range(14) for _ in range(40)])

NFTABLES = [
    ("no rule", nft(), IN, "accept"),
    ("a policy that drops", nft(policy="drop"), IN, "drop"),
    ("a policy that drops, of what is forwarded", nft(policy="drop", hook="forward"), IN, "accept"),
    ("the port", nft([match(DPORT, 4791), ACCEPT], policy="drop"), IN, "accept"),
    ("another port", nft([match(DPORT, 4790), ACCEPT], policy="drop"), IN, "drop"),
    ("any but the port", nft([match(DPORT, 4791, "!="), ACCEPT], policy="drop"), IN, "drop"),
    ("ports from one to another", nft([match(DPORT, {"range": [4000, 5000]}), DROP]), IN, "drop"),
    ("a set with a name", nft([match(DPORT, "@ports"), ACCEPT], policy="drop", more=[SET]), IN, "accept"),
    ("a set with a name and times", nft([match(DPORT, "@ports"), ACCEPT], policy="drop", more=[ELEMENTS]), IN, "accept"),
    ("a set that there is none of", nft([match(DPORT, "@ports"), DROP]), IN, "some"),
    ("the port of any protocol", nft([match({"payload": {"protocol": "th", "field": "dport"}}, 4791), DROP]), IN, "drop"),
    ("established", nft([match(STATE, ["established", "related"], "in"), ACCEPT], policy="drop"), IN, "drop"),
    ("new", nft([match(STATE, ["new"], "in"), ACCEPT], policy="drop"), IN, "accept"),
    ("a verdict map of states", nft([{"vmap": {"key": STATE, "data": {"set": [["established", ACCEPT], ["new", DROP]]}}}]), IN, "drop"),
    ("an address", nft([match({"payload": {"protocol": "ip", "field": "saddr"}}, "10.0.0.1"), DROP]), IN, "some"),
    ("any but an address", nft([match(SADDR, "10.0.0.1", "!="), DROP]), IN, "few"),
    ("any but several addresses", nft([match(SADDR, {"set": ["10.0.0.1", "10.0.0.2"]}, "!="), match(DPORT, 4791), DROP]), IN, "few"),
    ("any but an address, let in", nft([match(SADDR, "10.0.0.1", "!="), ACCEPT], policy="drop"), IN, "some"),
    ("an address of the other family", nft([match({"payload": {"protocol": "ip6", "field": "saddr"}}, "fd::1"), DROP]), IN, "accept"),
    ("UDP in a set of protocols", nft([match({"meta": {"key": "l4proto"}}, {"set": ["tcp", "udp"]}), DROP]), IN, "drop"),
    ("the netdev, for what comes in by it", nft([match({"meta": {"key": "iifname"}}, "eth0"), DROP]), IN, "drop"),
    ("the netdev that it leaves by, for what comes in", nft([match({"meta": {"key": "oifname"}}, "eth0"), DROP]), IN, "accept"),
    ("bits of TCP", nft([match({"&": [{"payload": {"protocol": "tcp", "field": "flags"}}, 2]}, 0, "!="), DROP]), IN, "accept"),
    ("so many connections", nft([match(DPORT, 4791), {"ct count": {"val": 100, "inv": True}}, DROP]), IN, "some"),
    ("a set with a limit", nft([{"set": {"op": "add", "elem": "x", "set": "@f", "stmt": [{"limit": {"rate": 10}}]}}, DROP]), IN, "some"),
    ("a target of iptables", nft([match(DPORT, 4791), {"xt": {"type": "target", "name": "REJECT"}}]), IN, "some"),
    ("a chain without a name", nft([match(DPORT, 4791), "jump { drop; match }"]), IN, "some"),
    ("counted and logged", nft([{"counter": {"packets": 1}}, {"log": {"prefix": "x"}}, DROP]), IN, "drop"),
    ("a table that sleeps", {"nftables": [{"table": {"family": "inet", "name": "t", "flags": ["dormant"]}}, *nft(policy="drop")["nftables"][2:]]},
     IN, "accept"),
    ("a limit", nft([{"limit": {"rate": 5, "per": "second"}}, DROP]), IN, "some"),
    ("a way back, as firewalld asks for", nft([match({"fib": {"result": "oif", "flags": ["saddr", "mark", "iif"]}}, False), DROP]), IN,
     "accept"),
    ("what was translated", nft([match({"ct": {"key": "status"}}, "dnat", "in"), ACCEPT], policy="drop"), IN, "drop"),
    ("chains that jump to each other, many times", MANY, IN, "drop"),
    ("rejected", nft([match(DPORT, 4791), {"reject": {"type": "icmp"}}]), IN, "drop"),
    ("rejected, with what only IPv6 has", nft([{"reject": {"type": "icmpv6", "expr": "no-route"}}]), IN, "accept"),
    ("rejected, with what both have", nft([{"reject": {"type": "icmpx", "expr": "no-route"}}]), IN6, "drop"),
    ("rejected, without more", nft([{"reject": None}]), IN6, "drop"),
    ("rejected, with what only TCP has", nft([{"reject": {"type": "tcp reset"}}]), IN, "accept"),
    ("a table of the other family", nft(policy="drop", family="ip6"), IN, "accept"),
    ("outwards", nft([match(DPORT, 4791), DROP], hook="output"), OUT, "drop"),
    ("to a container's address", nft([match(meta("iifname"), "docker0", "!="), match(DADDR, "172.17.0.2"), DROP]), IN, "accept"),
    ("to the device's address", nft([match(meta("iifname"), "docker0", "!="), match(DADDR, "10.1.0.5"), DROP]), IN, "drop"),
    ("to the device's network", nft([match(DADDR, {"prefix": {"addr": "10.1.0.0", "len": 16}}), ACCEPT], policy="drop"), IN, "accept"),
    ("to addresses from one to another", nft([match(DADDR, {"range": ["10.1.0.1", "10.1.0.4"]}), DROP]), IN, "accept"),
    ("to several", nft([match(DADDR, {"set": ["10.0.0.1", {"prefix": {"addr": "10.1.0.0", "len": 16}}]}), DROP]), IN, "drop"),
    ("from the device's address, outwards", nft([match(SADDR, "10.1.0.5"), DROP], hook="output"), OUT, "drop"),
    ("from another one, outwards", nft([match(SADDR, "10.1.0.6"), DROP], hook="output"), OUT, "accept"),
    ("addresses that nobody is in", nft([match(SADDR, "@ports"), DROP], more=[NOBODY]), IN, "accept"),
    ("a peer and the port", nft([match({"concat": [SADDR, DPORT]}, {"set": [{"concat": ["10.0.0.1", 4791]}, {"concat": ["10.0.0.2", 53]}]}),
                                 ACCEPT], policy="drop"), IN, "few"),
    ("a peer and another port", nft([match({"concat": [SADDR, DPORT]}, {"set": [{"concat": ["10.0.0.1", 53]}]}), ACCEPT], policy="drop"),
     IN, "drop"),
    ("the device's address and the port", nft([match({"concat": [DADDR, DPORT]}, "@ports"), ACCEPT], policy="drop", more=[
        {"set": {"family": "inet", "table": "t", "name": "ports", "elem": [{"concat": [{"prefix": {"addr": "10.1.0.0", "len": 16}},
                                                                                       {"range": [4000, 5000]}]}]}}]), IN, "accept"),
    ("a state and the port", nft([match({"concat": [STATE, DPORT]}, {"set": [{"concat": ["new", 4791]}]}), DROP]), IN, "drop"),
    ("a port of TCP and an address", nft([match({"concat": [{"payload": {"protocol": "tcp", "field": "dport"}}, SADDR]}, "@ports", "!="), DROP],
                                         more=[SET]), IN, "accept"),
    ("a map with the port, and the rest", nft([vmap(DPORT, [4791, ACCEPT], ["*", DROP])]), IN, "accept"),
    ("a map without the port, and the rest", nft([vmap(DPORT, ["*", DROP], [53, ACCEPT])]), IN, "drop"),
    ("a map that goes on for the port", nft([vmap(DPORT, [4791, {"continue": None}], ["*", DROP])]), IN, "accept"),
    ("a map with the rest first, and counted", nft([vmap(DPORT, [{"elem": {"val": "*", "counter": {"packets": 0, "bytes": 0}}}, DROP],
                                                         [{"elem": {"val": 4791, "counter": {"packets": 0, "bytes": 0}}}, ACCEPT])]), IN, "accept"),
    ("what a proxy may take", nft([match(DPORT, 4791), {"tproxy": {"port": 9}}, ACCEPT], hook="prerouting"), IN, "some"),
    ("a map of ports of TCP, and the rest", nft([vmap({"payload": {"protocol": "tcp", "field": "dport"}}, ["*", DROP])]), IN, "accept"),
    ("a map of netdevs and ports", nft([vmap({"concat": [meta("iifname"), DPORT]}, [{"concat": ["lo", {"range": [1, 65535]}]}, DROP],
                                             [{"concat": ["eth0", 4791]}, ACCEPT])], policy="drop"), IN, "accept"),
    ("not tracked, and that is let in", nft([match(DPORT, 4791), {"notrack": None}], [match(STATE, "untracked", "in"), ACCEPT], policy="drop"),
     IN, "accept"),
    ("not tracked, and only new ones are let in", nft([match(DPORT, 4791), {"notrack": None}], [match(STATE, "new", "in"), ACCEPT],
                                                      policy="drop"), IN, "drop"),
    ("some are not tracked", nft([match(SADDR, "10.0.0.1"), {"notrack": None}], [match(STATE, "untracked", "in"), ACCEPT], policy="drop"),
     IN, "few"),
    ("of no connection, before there are any", nft([match(STATE, "invalid", "in"), DROP], hook="prerouting", prio=-300), IN, "drop"),
    ("new, before there are connections", nft([match(STATE, "new", "in"), DROP], hook="prerouting", prio=-300), IN, "accept"),
    ("of no connection, later", nft([match(STATE, "invalid", "in"), DROP], hook="prerouting", prio=-150), IN, "accept"),
    ("tracked", nft([match(STATE, "untracked", "in"), ACCEPT], policy="drop"), IN, "drop"),
    ("a mark that another rule makes", nft([{"mangle": {"key": meta("mark"), "value": 1}}], [match(meta("mark"), 1), DROP]), IN, "some"),
    ("a mark that no packet has", nft([match({"&": [meta("mark"), 255]}, 0, "!="), DROP]), IN, "accept"),
    ("what is not for this host", nft([match({"fib": {"result": "type", "flags": ["daddr", "iif"]}}, {"set": ["local", "broadcast"]}, "!="),
                                       DROP]), IN, "accept"),
    ("what is for this host", nft([match({"fib": {"result": "type", "flags": ["daddr"]}}, "local"), DROP]), IN, "drop"),
    ("no way back, as a number", nft([match({"fib": {"result": "oif", "flags": ["saddr", "iif"]}}, "0"), DROP]), IN, "accept"),
    ("some way back", nft([match({"fib": {"result": "oif", "flags": ["saddr", "iif"]}}, "0", "!="), ACCEPT], policy="drop"), IN, "accept"),
    ("headers that are missing", nft([match({"exthdr": {"name": "frag"}}, False), DROP]), IN6, "drop"),
    ("headers that are missing, of the other family", nft([match({"exthdr": {"name": "frag"}}, False), DROP]), IN, "accept"),
    ("options that are missing", nft([match({"ip option": {"name": "lsrr"}}, False), DROP]), IN, "drop"),
    ("fragments", nft([match({"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 8191]}, 0, "!="), DROP]), IN, "accept"),
    ("ports above another", nft([match(DPORT, 4790, ">"), DROP]), IN, "drop"),
    ("answers of name servers", nft([match({"payload": {"protocol": "udp", "field": "sport"}}, 53), ACCEPT], policy="drop"), IN, "drop"),
    ("what processes of a user send", nft([match(meta("skuid"), 0, "!="), DROP], hook="output"), OUT, "accept"),
    ("whoever comes is remembered, and let in", nft([{"set": {"op": "add", "elem": SADDR, "set": "@d"}}, ACCEPT], policy="drop"), IN, "accept"),
    ("an extension of iptables that lets pass", nft([match(DPORT, 4791), {"xt": {"type": "target", "name": "LOG"}}, ACCEPT], policy="drop"),
     IN, "accept"),
    ("an extension of iptables that an older nft does not name", nft([match(DPORT, 4791), {"xt": None}, ACCEPT], policy="drop"),
     IN, "few"),
    ("sent on to a container", nft([match(DPORT, 4791), {"dnat": {"addr": "172.17.0.2"}}], hook="prerouting"), IN, "drop"),
    ("a VLAN by its own name", nft([match(meta("iifname"), "eth0.7"), DROP]), VLAN_IN, "drop"),
    ("a VLAN, and the netdev below it", nft([match(meta("iifname"), "eth0"), DROP]), VLAN_IN, "accept"),
    ("out of a VLAN", nft([match(meta("oif"), "eth0.7"), ACCEPT], policy="drop", hook="output"), VLAN_OUT, "accept"),
    ("at the netdev below a VLAN", nft(policy="drop", hook="ingress", family="netdev", dev="eth0"), VLAN_IN, "drop"),
    ("by its name at the netdev below", nft([match(meta("iifname"), "eth0"), DROP], hook="ingress", family="netdev", dev="eth0"), VLAN_IN, "drop"),
    ("at another netdev", nft(policy="drop", hook="ingress", family="netdev", dev="eth1"), IN, "accept"),
    ("at several netdevs", nft(policy="drop", hook="ingress", family="netdev", dev=["eth1", "eth0"]), IN, "drop"),
    ("at a netdev that only the text names, another", nft(policy="drop", hook="ingress", family="netdev", name="i"), IN, "accept"),
    ("at a netdev that only the text names", nft(policy="drop", hook="ingress", family="netdev", name="i2"), IN, "drop"),
    ("at a netdev that only the text names, outwards", nft(policy="drop", hook="egress", family="netdev", name="e"), OUT, "drop"),
    ("at a netdev that nothing names", nft(policy="drop", hook="ingress", family="netdev", name="i3"), IN, "accept"),
    ("outwards, where only the way in is closed", nft(policy="drop"), OUT, "accept"),
]


def verdict_of(kind, rules, packet):
    """What becomes of a packet."""
    if kind == "iptables":
        return verdict(lambda one: iptables_bases(rules, one), packet)[0]
    return verdict(lambda one: nft_bases(rules, one, netdevs=netdevs_of_chains(CHAINS)), packet)[0]


# What Linux 6.18 answers who asks for its tables: two of them; and the end
TABLES = bytes.fromhex("38000000000a0200010000002e07000001000004060001007400000008000300000000000c000400000000000000000108000200000000"
                       "0038000000000a0200010000002e07000005000004070001006e31000008000300000000000c00040000000000000000020800020000000000")
THE_END = bytes.fromhex("1400000003000200010000002e07000000000000")


def judged():
    """Name, answer and what it should be, of each case."""
    for kind, cases in (("iptables", IPTABLES), ("nftables", NFTABLES)):
        for name, rules, packet, expected in cases:
            yield f"{kind}, {name}", verdict_of(kind, rules, packet), expected
    header = "# Generated by iptables-save v1.8.9 (nf_tables) on x\n*filter\nCOMMIT\n"
    yield "iptables' own table", tables_in_nftables(header), {"filter"}
    yield "a table of that name which is not", tables_in_nftables(
        header + "# Table `filter' contains incompatible base-chains, use 'nft' tool to list them.\n"), set()
    yield "legacy iptables has none in nftables", tables_in_nftables("# Generated by iptables-save v1.8.9 on x\n*filter\nCOMMIT\n"), set()
    yield "tables, as the kernel names them", names_of_tables(TABLES), ([("inet", "t"), ("netdev", "n1")], False)
    yield "the end of the tables", names_of_tables(TABLES + THE_END), ([("inet", "t"), ("netdev", "n1")], True)


def main():
    """All cases."""
    wrong = 0
    for name, answer, expected in judged():
        wrong += answer != expected
        print(f"ok: {name}" if answer == expected else f"WRONG: {name}\n  {answer}, not {expected}")
    print(f"{wrong} wrong")


main()
