# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Rules of iptables, as iptables-save prints them, in the simple form of rules.py."""
import functools
import shlex

from .rules import PORT, SOURCE_PORTS, Base, Rule, address_is, any_of, before_tracking, not_of, number_is, perhaps

# An option that matches nothing: its extension is named, or it is for people
NOTHING = object()

# Extensions whose options say all that they match, so that -m alone says nothing
WITH_OPTIONS = {"udp", "tcp", "icmp", "icmp6", "icmpv6", "conntrack", "state", "multiport", "comment", "addrtype", "mark", "connmark",
                "iprange", "pkttype", "owner", "limit", "hashlimit", "length", "mac", "set", "string", "recent", "statistic",
                "physdev", "connlimit", "time", "ttl", "hl", "dscp", "tos", "bpf", "u32", "rpfilter"}
# Those of headers that RoCE packets do not have
OTHER_HEADERS = {"frag", "rt", "hbh", "dst", "mh", "ah", "esp", "sctp", "dccp"}
VERDICTS = {"ACCEPT": "accept", "DROP": "drop", "REJECT": "drop", "RETURN": "return",
            # what is sent elsewhere does not come to the device, either
            "DNAT": "drop", "REDIRECT": "drop", "TPROXY": "drop", "MARK": "mark", "CONNMARK": "mark", "NOTRACK": "notrack"}
# Options with a text of somebody's, whatever it looks like
TEXTS = ("--comment", "--log-prefix", "--nflog-prefix", "--string", "--hex-string")


def ports_are(text, ports):
    """Is a port, one of a range, in a list like 53,4000:5000? None: perhaps."""
    found = []
    for part in text.split(","):
        low, colon, high = part.partition(":")
        try:
            found.append(number_is(ports, int(low or 0), int((high or 65535) if colon else low)))
        except ValueError:
            # a service's name, of which RoCE has none that iptables-save prints
            continue
    return any_of(found)


def is_name(pattern, name):
    """Is this the name of a netdev that an option of iptables means?"""
    return name.startswith(pattern[:-1]) if pattern.endswith("+") else name == pattern


def mark_is(text, mark):
    """Is a mark the one of a text like 0x1/0xff?"""
    wanted, _, mask = text.partition("/")
    try:
        return None if mark is None else mark & int(mask or "0xffffffff", 0) == int(wanted, 0)
    except ValueError:
        return None


def of_address(name, value, packet):
    """Does an option about addresses match?"""
    if (name in ("-d", "--destination", "--dst-range", "--dst-type")) != packet.incoming:
        # the peer's, of which nothing is known but that it is no address of this host
        local = value.startswith(("127.", "::1/")) and not (packet.address and packet.address.is_loopback)
        return "UNICAST" in value.split(",") if name.endswith("-type") else False if local else None
    if name.endswith("-type"):
        return "LOCAL" in value.split(",")
    return address_is(packet.address, *value.split("-", 1)) if name.endswith("-range") else address_is(packet.address, value)


def of_module(value):
    """Does the name of an extension say that it matches?"""
    return NOTHING if value in WITH_OPTIONS else False if value in OTHER_HEADERS else None


def iptables_option(name, value, packet):
    """Does one option match?"""
    if name in ("-p", "--protocol"):
        return value in ("udp", "17", "all", "0")
    if name in ("-i", "--in-interface"):
        return packet.incoming and is_name(value, packet.netdev)
    if name in ("-o", "--out-interface"):
        return not packet.incoming and is_name(value, packet.netdev)
    if name in ("--dport", "--dports", "--destination-port", "--destination-ports"):
        return ports_are(value, range(PORT, PORT + 1))
    if name in ("--sport", "--sports", "--source-port", "--source-ports"):
        return ports_are(value, SOURCE_PORTS)
    if name == "--ports":
        return any_of([ports_are(value, range(PORT, PORT + 1)), ports_are(value, SOURCE_PORTS)])
    if name in ("--ctstate", "--state"):
        return packet.state.upper() in value.split(",")
    if name in ("--uid-owner", "--gid-owner", "-f", "--fragment", "--invert"):
        # no process has sent it, it is no fragment, and (rpfilter) there is a way back to a peer
        return False
    if name == "--mark":
        return mark_is(value, packet.mark)
    if name == "--pkt-type" and packet.incoming:
        return value == "unicast"
    if name in ("-s", "-d", "--source", "--destination", "--src-range", "--dst-range", "--src-type", "--dst-type"):
        return of_address(name, value, packet)
    if name in ("-m", "--match"):
        return of_module(value)
    if name in ("--comment", "--loose", "--validmark", "--accept-local", "--limit-iface-in", "--limit-iface-out"):
        return NOTHING
    return None


def options(words):
    """The options of a rule: is it turned round ("!"), its name, its value."""
    no, at = False, 0
    while at < len(words):
        name, value = words[at], ""
        at += 1
        if name == "!":
            no = True
            continue
        if at < len(words) and (name in TEXTS or (not words[at].startswith("-") and words[at] != "!")):
            value = words[at]
            at += 1
            # of several the first
            while at < len(words) and not words[at].startswith("-") and words[at] != "!":
                at += 1
        yield no, name, value
        no = False


def target_rules(target, rest, matches):
    """The rules that a target and its own options are."""
    if target in ("NFQUEUE", "QUEUE"):
        # whoever listens decides, and whoever does not drops
        return [Rule(matches + [None], "drop", None)]
    if target == "CT":
        return [Rule(matches, "notrack", None)] if "--notrack" in rest else []
    return [Rule(matches, VERDICTS.get(target, "jump"), None if target in VERDICTS else target)]


def iptables_rules(words, packet):
    """The rules that one line of iptables-save is, after the name of its chain."""
    matches = []
    for no, name, value in options(words):
        if name in ("-g", "--goto"):
            return [Rule(matches, "goto", value)]
        if name in ("-j", "--jump"):
            # what follows is the target's
            return target_rules(value, words, matches)
        match = iptables_option(name, value, packet)
        if match is not NOTHING:
            matches.append(not_of(match) if no else match)
    return []


def split(lines):
    """The words of the rule that some lines begin with, and how many lines it has: a comment may have ends of lines in it."""
    for number in range(1, 9):
        try:
            return shlex.split("\n".join(lines[:number])), number
        except ValueError:
            continue
    # One that nobody can read, of a chain with this name
    return [*lines[0].split()[:2], None], 1


@functools.lru_cache(maxsize=8)
def lines_of(saved):
    """What iptables-save has printed, as the words of each line or rule."""
    found, lines, at = [], saved.split("\n"), 0
    while at < len(lines):
        words, number = split(lines[at:at + 8]) if lines[at].startswith("-A ") else (lines[at].split(), 1)
        found.append(words)
        at += number
    return found


def iptables_bases(saved, packet, what="iptables"):
    """The base chains that a packet passes, of what iptables-save has printed."""
    wanted = ("PREROUTING", "INPUT") if packet.incoming else ("OUTPUT", "POSTROUTING")
    bases, chains, table = [], {}, ""
    for words in lines_of(saved):
        if not words:
            continue
        if words[0].startswith("*"):
            table, chains = words[0][1:], {}
        elif words[0].startswith(":") and len(words) > 1:
            name, policy = words[0][1:], words[1]
            chains[name] = []
            if name in wanted and policy != "-":
                bases.append(Base(f"{what}, table {table}, chain {name}", chains, name, policy.lower()))
        elif words[0] == "-A" and len(words) > 1:
            here = before_tracking(packet) if table == "raw" else packet
            rules = perhaps([]) if None in words else iptables_rules(words[2:], here)
            chains.setdefault(words[1], []).extend(rules)
    for base in bases:
        for rules in base.chains.values():
            # A target that is no chain is an extension: LOG, TCPMSS. The packet goes on.
            rules[:] = [rule._replace(action=None) if rule.action in ("jump", "goto") and rule.target not in base.chains
                        else rule for rule in rules]
    return bases


def tables_in_nftables(saved):
    """The tables of nftables that are iptables' own, which iptables-save has shown in full. It says so of the others."""
    if "(nf_tables)" not in saved.split("\n", 1)[0]:
        return set()
    shown = {line[1:] for line in saved.split("\n") if line.startswith("*")}
    return {name for name in shown if f"`{name}' contains incompatible" not in saved}
