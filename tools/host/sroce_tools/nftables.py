# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Rules of nftables, as "nft -j list ruleset" prints them, in the simple form of rules.py."""
import re

from .rules import PORT, SOURCE_PORTS, Base, Rule, address_is, all_of, any_of, before_tracking, not_of, number_is, perhaps

UNKNOWN = object()
# A route that there is, whichever
ROUTE = object()
# What the packet is none of, whatever a rule asks
NO_SUCH = {"none of them"}
HOOKS = {True: ("ingress", "prerouting", "input"), False: ("output", "postrouting", "egress")}
NETDEV_HOOKS = ("ingress", "egress")
# The priority of connection tracking
TRACKING = -200


def only(expression):
    """The kind of an expression, and what it has; (None, None) for a plain value."""
    return next(iter(expression.items())) if isinstance(expression, dict) and expression else (None, None)


# --- what the packet has ---------------------------------------------------------------------------------


def of_meta(key, packet):
    """What the kernel knows of the packet beside its bytes."""
    own, other = ("iif", "oif") if packet.incoming else ("oif", "iif")
    if key in (other, other + "name"):
        return NO_SUCH
    if key in ("skuid", "skgid"):
        # no process has sent it
        return False
    if key == "pkttype" and not packet.incoming:
        return UNKNOWN
    return {
        "l4proto": {"udp", 17}, "nfproto": {"ipv4" if packet.family == "ip" else "ipv6"},
        "protocol": {packet.family}, "mark": UNKNOWN if packet.mark is None else {packet.mark},
        own: {packet.netdev}, own + "name": {packet.netdev}, "pkttype": {"host", "unicast"},
    }.get(key, UNKNOWN)


def of_conntrack(key, packet):
    """What connection tracking knows of it. Without tracking there is nothing but that."""
    if key == "state":
        return {packet.state}
    if packet.state in ("untracked", "invalid"):
        return False
    if key == "mark":
        return UNKNOWN if packet.mark is None else {packet.mark}
    return {"direction": {"original"}, "status": NO_SUCH}.get(key, UNKNOWN)


def of_route(what, packet):
    """What the routing table says of its addresses."""
    flags = what.get("flags", ())
    if what.get("result") != "type":
        # That of a peer to whom this host can answer leads back
        return ROUTE
    if "daddr" in flags:
        return {"local"} if packet.incoming else {"unicast"}
    return {"unicast"} if packet.incoming else {"local"}


def of_payload(what, packet):
    """A field of its headers."""
    if "field" not in what:
        return UNKNOWN
    protocol, field = what.get("protocol"), what["field"]
    if protocol in ("ip", "ip6"):
        if protocol != packet.family or "tunnel" in what:
            return False
        if field in ("saddr", "daddr"):
            known = (field == "daddr") == packet.incoming and packet.address is not None
            return packet.address if known else UNKNOWN
        return {"protocol": {"udp", 17}, "nexthdr": {"udp", 17},
                "version": {4 if packet.family == "ip" else 6}}.get(field, UNKNOWN)
    if protocol in ("udp", "th") and "tunnel" not in what:
        return {"dport": {PORT}, "sport": SOURCE_PORTS}.get(field, UNKNOWN)
    if protocol == "vlan":
        # only below the netdev that the packets are for may they have a tag
        return UNKNOWN if packet.below else False
    return UNKNOWN if protocol == "ether" and "tunnel" not in what else False


def of_bits(kind, what, packet):
    """Some bits of a field."""
    if not isinstance(what, list) or len(what) != 2:
        return UNKNOWN
    field, mask = value_of(what[0], packet), what[1]
    if field is False:
        # of a field that there is none of, no bits either
        return False
    if kind == "&" and isinstance(mask, int):
        if only(what[0])[0] == "payload" and only(what[0])[1].get("field") == "frag-off" and not mask & 0x4000:
            # RoCE packets are never fragments
            return {0}
        if isinstance(field, set) and len(field) == 1 and isinstance(min(field), int):
            return {min(field) & mask}
    return UNKNOWN


def value_of(left, packet):
    """What the packet has where an nft expression looks.

    A set of equal names, an address, a range of numbers it is one of, a list of these for a concatenation, ROUTE,
    UNKNOWN, or False if it has no such field: then the rule does not match, whatever it compares with.
    """
    kind, what = only(left)
    if kind in ("&", "|", "^", "<<", ">>"):
        return of_bits(kind, what, packet)
    if kind == "concat":
        values = [value_of(one, packet) for one in what]
        return False if False in values else values
    if kind in ("exthdr", "ip option", "tcp option", "sctp chunk", "dccp option"):
        return False
    look = {"meta": lambda: of_meta(what.get("key"), packet), "ct": lambda: of_conntrack(what.get("key"), packet),
            "fib": lambda: of_route(what, packet), "payload": lambda: of_payload(what, packet)}.get(kind)
    return look() if look and isinstance(what, dict) else UNKNOWN


# --- what a rule compares with ------------------------------------------------------------------------------


def bounds(right):
    """A number, or two numbers with all between them, as those two."""
    kind, what = only(right)
    pair = what if kind == "range" else [right, right]
    return pair if all(isinstance(one, int) and not isinstance(one, bool) for one in pair) else None


def single_is(value, right):
    """one_is() for a right side that is neither several nor a concatenation."""
    kind, what = only(right)
    if value is ROUTE:
        return bool(right) and right != "0" if isinstance(right, (bool, int)) or right == "0" else None
    if hasattr(value, "packed"):
        if kind == "prefix":
            return address_is(value, f"{what.get('addr')}/{what.get('len')}")
        return address_is(value, *what) if kind == "range" else address_is(value, right) if isinstance(right, str) else None
    numbers = value if isinstance(value, range) else [one for one in value if isinstance(one, int)]
    if bounds(right) and numbers:
        return number_is(numbers, *bounds(right))
    if isinstance(value, range) or kind or isinstance(right, bool):
        return False if value == NO_SUCH else None
    if isinstance(right, str) and right.endswith("*"):
        return any(isinstance(one, str) and one.startswith(right[:-1]) for one in value)
    return right in value


def one_is(value, right):
    """Is what the packet has the right side of a comparison, or in it? None: perhaps."""
    kind, what = only(right)
    if kind == "elem":
        return one_is(value, what.get("val"))
    if kind == "set" or isinstance(right, list):
        several = what if kind == "set" else right
        return any_of([one_is(value, one) for one in several]) if isinstance(several, list) else one_is(value, several)
    if right == "*":
        return True
    if kind == "concat":
        fits = isinstance(value, list) and len(value) == len(what)
        return all_of([one_is(*pair) for pair in zip(value, what)]) if fits else None
    if value is UNKNOWN or isinstance(value, list):
        return None
    return single_is(value, right)


def ordered(value, op, right):
    """Is a number that the packet has less, or more, than another?"""
    known = isinstance(value, range) or isinstance(value, set) and any(isinstance(one, int) for one in value)
    if not known or not isinstance(right, int):
        return None
    low, high = {"<": (0, right - 1), "<=": (0, right), ">": (right + 1, 1 << 64), ">=": (right, 1 << 64)}[op]
    return one_is(value, {"range": [low, high]})


def is_missing(left, packet):
    """Is "missing" true of a header or an option that the packet has not? Not if it is one of the other family."""
    kind = only(left)[0]
    family = {"exthdr": "ip6", "ip option": "ip"}.get(kind)
    return packet.family == family if family else None


def nft_match(match, packet, sets):
    """Does a match statement of nft match?"""
    value, op, right = value_of(match.get("left"), packet), match.get("op"), match.get("right")
    if value is False:
        return is_missing(match.get("left"), packet) if right is False and op == "==" else False
    if isinstance(right, str) and right.startswith("@"):
        right = sets.get(right[1:])
        if right is None:
            return None
    if op in ("<", ">", "<=", ">="):
        return ordered(value, op, right)
    same = one_is(value, right)
    return same if op in ("==", "in") else not_of(same) if op == "!=" else None


# --- what a rule does ---------------------------------------------------------------------------------------


def nft_action(statement):
    """The action and its target that a statement of nft is, or None."""
    for name in ("accept", "drop", "return"):
        if name in statement:
            return name, None
    if "reject" in statement or "dnat" in statement or "redirect" in statement:
        # What is sent elsewhere does not come to the device, either
        return "drop", None
    for name in ("jump", "goto"):
        if name in statement:
            return name, statement[name].get("target")
    return None


def is_rest(key):
    """Is this the element for whatever has none of its own?"""
    kind, what = only(key)
    return key == "*" or (kind == "elem" and what.get("val") == "*")


def is_rejected(how, packet):
    """Is it a packet that can be rejected so? What nft has added to a rule for that, it does not print."""
    kind = (how or {}).get("type")
    return kind != "tcp reset" and packet.family == {"icmp": "ip", "icmpv6": "ip6"}.get(kind, packet.family)


def nft_map(statement, packet, sets):
    """The rules that a verdict map is: one for each of its elements, of which at most one matches; "*" is for the rest."""
    data = statement.get("data")
    if isinstance(data, str):
        data = {"set": sets.get(data.lstrip("@"), [])}
    elements = data.get("set", []) if isinstance(data, dict) else []
    rules = []
    for key, verdict in sorted(elements, key=lambda element: is_rest(element[0])):
        match = nft_match({"op": "==", "left": statement.get("key"), "right": key}, packet, sets)
        action = nft_action(verdict)
        if action:
            rules.append(Rule([match], *action))
        elif match is True:
            # "continue": with the next rule, and not with the rest of the map
            break
    return rules


# What a rule does beside its verdict, whatever the packet is
HARMLESS = {"counter", "log", "mangle", "comment", "last", "snat", "masquerade", "flow", "ct helper", "ct timeout",
            "ct expectation", "dup"}
# Likewise extensions of iptables
HARMLESS_TARGETS = {"LOG", "NFLOG", "TCPMSS", "DSCP", "TOS", "CLASSIFY", "CHECKSUM", "SET", "TRACE", "AUDIT", "TTL", "HL", "ECN",
                    "SECMARK", "CONNSECMARK", "SNAT", "MASQUERADE"}


def nft_effect(statement):
    """What a statement changes that later rules may ask for."""
    if "notrack" in statement:
        return "notrack"
    marks = ({"meta": {"key": "mark"}}, {"ct": {"key": "mark"}})
    return "mark" if "mangle" in statement and statement["mangle"].get("key") in marks else None


def is_harmless(statement):
    """Does the rule go on after this statement, for every packet?"""
    if "set" in statement:
        # a packet's address is remembered; more than that only with a limit of its own
        return all(set(one) <= {"counter"} for one in statement["set"].get("stmt", ()))
    return bool(HARMLESS & set(statement))


def xt_rules(what, matches):
    """The rules that an extension of iptables is, of which nft prints nothing but the name."""
    if what.get("type") != "target" or what.get("name") in HARMLESS_TARGETS:
        return []
    effects = {"MARK": ["mark"], "CONNMARK": ["mark"], "CT": ["notrack"], "NOTRACK": ["notrack"]}.get(what.get("name"))
    return [Rule(matches + [None], effect, None) for effect in effects] if effects else perhaps(matches)


def nft_rules(expression, packet, sets):
    """The rules in the simple form that one rule of nft is. What is not known may match or not, accept or drop."""
    matches, rules = [], []
    for statement in expression:
        if not isinstance(statement, dict):
            # a chain without a name, as text
            return rules + perhaps(matches)
        action, effect = nft_action(statement), nft_effect(statement)
        if "match" in statement:
            matches = matches + [nft_match(statement["match"], packet, sets)]
        elif "vmap" in statement:
            return rules + [Rule(matches + rule.matches, rule.action, rule.target)
                            for rule in nft_map(statement["vmap"], packet, sets)]
        elif "reject" in statement:
            rules.append(Rule(matches + [is_rejected(statement["reject"], packet)], *action))
        elif action:
            return rules + [Rule(matches, *action)]
        elif effect:
            rules.append(Rule(matches, effect, None))
        elif "tproxy" in statement:
            # to a proxy, if there is one
            rules.append(Rule(matches + [None], "drop", None))
        elif "queue" in statement or "fwd" in statement:
            return rules + perhaps(matches)
        elif "xt" in statement and not statement["xt"]:
            # nft before 1.0.6 does not say which extension of iptables that is: it may match, accept or drop
            matches = matches + [None]
            rules += perhaps(matches)
        elif statement.get("xt", {}).get("type") == "target":
            rules += xt_rules(statement["xt"], matches)
        elif not is_harmless(statement):
            matches = matches + [None]
    return rules


# --- chains ---------------------------------------------------------------------------------------------------


def netdevs_of_chains(text):
    """The netdevs of chains, by (family, table, chain), of what "nft list chains" has printed.

    Up to 1.0.6, nft leaves them out of its JSON.
    """
    found, table, chain = {}, None, None
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["table"] and len(words) > 2:
            table = (words[1], words[2])
        elif words[:1] == ["chain"] and len(words) > 1:
            chain = words[1]
        hooked = re.search(r"\bhook \w+ devices? (?:= )?(\{[^}]*\}|\S+)", line)
        if hooked and table:
            found[(*table, chain)] = re.findall(r'[^\s"{},]+', hooked[1])
    return found


def netdev_of(item, packet, netdevs):
    """The netdev at whose hook a base chain meets the packet; None if it does not. netdevs: of netdevs_of_chains()."""
    if item["hook"] not in NETDEV_HOOKS:
        return packet.netdev
    named = item.get("dev") or netdevs.get((item.get("family"), item.get("table"), item["name"]), [])
    for netdev in (packet.netdev, *packet.below):
        for one in named if isinstance(named, list) else [named]:
            if netdev == one or (one.endswith("*") and netdev.startswith(one[:-1])):
                return netdev
    return None


class Ruleset:
    """What "nft -j list ruleset" has printed, by table."""

    def __init__(self, printed):
        self.items = [only(item) for item in printed.get("nftables", [])]
        self.sets, self.rules, self.bases = {}, {}, []
        self.asleep = {(item["family"], item["name"]) for kind, item in self.items
                       if kind == "table" and "dormant" in item.get("flags", ())}
        for kind, item in self.items:
            table = (item.get("family"), item.get("table")) if isinstance(item, dict) else None
            if kind in ("set", "map"):
                self.sets.setdefault(table, {})[item["name"]] = item.get("elem", [])
            elif kind == "rule":
                self.rules.setdefault(table, []).append(item)
            elif kind == "chain" and "hook" in item and table not in self.asleep:
                self.bases.append((table, item))

    def chains(self, table, packet):
        """The chains of a table in the simple form."""
        found = {}
        for item in self.rules.get(table, ()):
            found.setdefault(item["chain"], []).extend(nft_rules(item.get("expr", []), packet, self.sets.get(table, {})))
        return found


def is_before_tracking(item):
    """Does a base chain see packets before connection tracking does?"""
    return item["hook"] == "ingress" or item["hook"] in ("prerouting", "output") and item.get("prio", 0) < TRACKING


def nft_bases(printed, packet, skip=(), netdevs=None):
    """The base chains that a packet passes, of what nft has printed; without some tables of its family."""
    ruleset, made, bases = Ruleset(printed), {}, []
    for table, item in ruleset.bases:
        netdev = netdev_of(item, packet, netdevs or {})
        if item["hook"] not in HOOKS[packet.incoming] or table[0] not in ("inet", "netdev", packet.family) or not netdev:
            continue
        if table[0] == packet.family and table[1] in skip:
            continue
        here = packet._replace(netdev=netdev)
        here = before_tracking(here) if is_before_tracking(item) else here
        if (table, here) not in made:
            made[table, here] = ruleset.chains(table, here)
        bases.append(Base(f"nftables, table {table[0]} {table[1]}, chain {item['name']}", made[table, here], item["name"],
                          item.get("policy", "accept")))
    return bases


def filters_bridges(printed):
    """Are there rules for what a bridge forwards, which are not followed here?"""
    return any(kind == "rule" and item.get("family") == "bridge" for kind, item in map(only, printed.get("nftables", [])))
