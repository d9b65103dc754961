# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the firewall of this network namespace does with RoCE packets.

The rules of nftables and of iptables become the same simple form: chains of rules, each with what it matches and what
it does. A match is True, False or, where that depends on what is not known here (an address, a mark), None. A packet
goes through them as it would through the kernel, and what can become of it is a set of outcomes.

Of RoCE packets all are "new" for conntrack: the two directions have UDP ports that do not belong to each other, so a
rule for established connections never lets them pass.
"""
import functools
import os
import shlex
from collections import namedtuple

from . import system

PORT = 4791

# family: "ip" or "ip6"; incoming: through the hooks of what comes in by the netdev, or of what leaves by it
Packet = namedtuple("Packet", "family incoming netdev")
# matches: True, False and None; action: accept, drop, return, jump, goto or None; target: a chain
Rule = namedtuple("Rule", "matches action target")
# where: for people; policy: of a base chain
Base = namedtuple("Base", "where chains name policy")

UNKNOWN = object()
# What the packet is none of, whatever a rule asks
NO_SUCH = {"none of them"}
HOOKS = {True: ("ingress", "prerouting", "input"), False: ("output", "postrouting", "egress")}


def all_of(matches):
    """Do all match? None: perhaps."""
    if False in matches:
        return False
    return None if None in matches else True


def outcomes(chains, name, known, doubt=True, depth=0):
    """What can become of the packet in a chain: accept, drop, and continue for the end of the chain.

    known: what was found out before, by chain; doubt: without it, what may match does not, as for an ordinary peer
    """
    if name in known:
        return known[name]
    found, over = set(), False
    # The kernel has no loops and no more than 16 levels
    for rule in chains.get(name, ()) if depth < 17 else ():
        hit = all_of(rule.matches)
        if not hit and not (hit is None and doubt) or rule.action is None:
            continue
        if rule.action in ("jump", "goto"):
            below = outcomes(chains, rule.target, known, doubt, depth + 1)
            found |= below if rule.action == "goto" else below - {"continue"}
            over = rule.action == "goto" or "continue" not in below
        else:
            found.add("continue" if rule.action == "return" else rule.action)
            over = True
        over = over and hit
        if over:
            break
    known[name] = found if over else found | {"continue"}
    return known[name]


def of_base(base, doubt=True):
    """The same for a base chain, whose end is its policy."""
    found = outcomes(base.chains, base.name, {}, doubt)
    return {base.policy if outcome == "continue" else outcome for outcome in found}


# --- nftables ------------------------------------------------------------------------------------------


def value_of(left, packet):
    """What the packet has where an nft expression looks: a set of equal names, False if it has no such field."""
    kind, what = next(iter(left.items())) if isinstance(left, dict) and left else (None, None)
    if kind in ("&", "|", "^", "<<", ">>") and isinstance(what, list):
        # of a field that there is none of, no bits either
        return False if value_of(what[0], packet) is False else UNKNOWN
    if kind in ("exthdr", "ip option", "tcp option", "sctp chunk"):
        return False
    if kind == "meta":
        own, other = ("iif", "oif") if packet.incoming else ("oif", "iif")
        if what.get("key") in (other, other + "name"):
            return NO_SUCH
        return {
            "l4proto": {"udp", 17}, "nfproto": {"ipv4" if packet.family == "ip" else "ipv6"},
            "protocol": {packet.family}, "mark": {0}, own: {packet.netdev}, own + "name": {packet.netdev},
        }.get(what.get("key"), UNKNOWN)
    if kind == "ct":
        return {"state": {"new"}, "direction": {"original"}, "status": NO_SUCH, "mark": {0}}.get(what.get("key"), UNKNOWN)
    if kind == "fib":
        # Is the source's route another one? Not that of a peer to whom this host can answer
        return NO_SUCH
    if kind != "payload" or "field" not in what:
        return UNKNOWN
    protocol, field = what["protocol"], what["field"]
    if protocol in ("ip", "ip6"):
        if protocol != packet.family:
            return False
        return {"udp", 17} if field in ("protocol", "nexthdr") else UNKNOWN
    if protocol in ("udp", "th"):
        return {PORT} if field == "dport" else UNKNOWN
    return UNKNOWN if protocol == "ether" else False


def one_is(value, right):
    """Is what the packet has the right side of a comparison, or in it?"""
    if isinstance(right, dict) and "elem" in right:
        right = right["elem"].get("val")
    if isinstance(right, dict) and "set" in right:
        right = right["set"]
    if isinstance(right, list):
        found = [one_is(value, one) for one in right]
        return True if True in found else None if None in found else False
    if isinstance(right, dict) and "range" in right:
        low, high = right["range"]
        numbers = [one for one in value if isinstance(one, int)]
        if not numbers or not isinstance(low, int) or not isinstance(high, int):
            return None
        return low <= numbers[0] <= high
    if isinstance(right, bool):
        return False if value == NO_SUCH else None
    if isinstance(right, dict):
        return None
    if isinstance(right, str) and right.endswith("*"):
        return any(isinstance(one, str) and one.startswith(right[:-1]) for one in value)
    return right in value


def nft_match(match, packet, sets):
    """Does a match statement of nft match?"""
    value, right = value_of(match.get("left"), packet), match.get("right")
    if value is False:
        return False
    if value is UNKNOWN:
        return None
    if isinstance(right, str) and right.startswith("@"):
        right = sets.get(right[1:])
        if right is None:
            return None
    same = one_is(value, right)
    op = match.get("op")
    if op in ("==", "in"):
        return same
    if op == "!=":
        return None if same is None else not same
    return None


def nft_action(statement):
    """The action and its target that a statement of nft is, or None."""
    for name in ("accept", "drop", "return"):
        if name in statement:
            return name, None
    if "reject" in statement:
        return "drop", None
    for name in ("jump", "goto"):
        if name in statement:
            return name, statement[name].get("target")
    return None


def nft_map(statement, packet, sets):
    """The rules that a verdict map is: one for each of its elements, of which at most one matches."""
    data = statement.get("data")
    if isinstance(data, str):
        data = {"set": sets.get(data.lstrip("@"), [])}
    rules = []
    for element in data.get("set", []) if isinstance(data, dict) else []:
        key, verdict = element
        match = nft_match({"op": "==", "left": statement.get("key"), "right": key}, packet, sets)
        action = nft_action(verdict)
        if action:
            rules.append(Rule([match], *action))
    return rules


# What a rule does beside its verdict, whatever the packet is
HARMLESS = {"counter", "log", "mangle", "notrack", "comment", "last", "snat", "dnat", "masquerade", "redirect", "flow", "tproxy"}


def nft_rules(expression, packet, sets):
    """The rules in the simple form that one rule of nft is. What is not known may match or not, accept or drop."""
    matches = []
    for statement in expression:
        if not isinstance(statement, dict):
            # a chain without a name, as text
            return perhaps(matches)
        if "match" in statement:
            matches.append(nft_match(statement["match"], packet, sets))
            continue
        if "vmap" in statement:
            return [Rule(matches + rule.matches, rule.action, rule.target)
                    for rule in nft_map(statement["vmap"], packet, sets)]
        action = nft_action(statement)
        if action:
            return [Rule(matches, *action)]
        if "queue" in statement or "fwd" in statement or statement.get("xt", {}).get("type") == "target":
            return perhaps(matches)
        if not HARMLESS & set(statement):
            matches.append(None)
    return []


def perhaps(matches):
    """Accepted or dropped, or neither: nobody knows."""
    return [Rule(matches + [None], "accept", None), Rule(matches + [None], "drop", None)]


def tables_of_iptables(saved):
    """The tables of nftables that are iptables' own, which iptables-save has shown in full. It says so of the others."""
    if "(nf_tables)" not in saved.split("\n", 1)[0]:
        return set()
    shown = {line[1:] for line in saved.split("\n") if line.startswith("*")}
    return {name for name in shown if f"`{name}' contains incompatible" not in saved}


def nft_bases(ruleset, packet, skip=()):
    """The base chains that a packet passes, of what "nft -j list ruleset" has printed; without some tables of its family."""
    families = ("inet", "netdev", packet.family)
    items = [next(iter(item.items())) for item in ruleset.get("nftables", [])]
    chains, sets, bases = {}, {}, []
    asleep = {(item["family"], item["name"]) for kind, item in items if kind == "table" and "dormant" in item.get("flags", ())}
    for kind, item in items:
        table = (item.get("family"), item.get("table"))
        if kind in ("set", "map"):
            sets.setdefault(table, {})[item["name"]] = item.get("elem", [])
    for kind, item in items:
        table = (item.get("family"), item.get("table"))
        if kind == "rule":
            rules = nft_rules(item.get("expr", []), packet, sets.get(table, {}))
            chains.setdefault(table, {}).setdefault(item["chain"], []).extend(rules)
    for kind, item in items:
        table = (item.get("family"), item.get("table"))
        if kind != "chain" or item.get("hook") not in HOOKS[packet.incoming] or table[0] not in families:
            continue
        if table in asleep or (table[0] == packet.family and table[1] in skip):
            continue
        netdevs = item.get("dev", packet.netdev)
        if packet.netdev in (netdevs if isinstance(netdevs, list) else [netdevs]):
            bases.append(Base(f"nftables, table {table[0]} {table[1]}, chain {item['name']}", chains.get(table, {}),
                              item["name"], item.get("policy", "accept")))
    return bases


# --- iptables --------------------------------------------------------------------------------------------


def is_port(text):
    """Is the port of RoCE in a list like 53,4000:5000?"""
    for part in text.split(","):
        low, colon, high = part.partition(":")
        try:
            if int(low or 0) <= PORT <= int((high or 65535) if colon else low):
                return True
        except ValueError:
            # a service's name, of which RoCE has none that iptables-save prints
            continue
    return False


def is_name(pattern, name):
    """Is this the name of a netdev that an option of iptables means?"""
    return name.startswith(pattern[:-1]) if pattern.endswith("+") else name == pattern


def iptables_option(name, value, packet):
    """Does one option match? UNKNOWN: it is none that matches anything."""
    if name in ("-p", "--protocol"):
        return value in ("udp", "17", "all", "0")
    if name in ("-i", "--in-interface"):
        return packet.incoming and is_name(value, packet.netdev)
    if name in ("-o", "--out-interface"):
        return not packet.incoming and is_name(value, packet.netdev)
    if name in ("--dport", "--dports", "--destination-port", "--destination-ports"):
        return is_port(value)
    if name in ("--ctstate", "--state"):
        return "NEW" in value.split(",")
    if name == "--dst-type" and packet.incoming:
        return "LOCAL" in value.split(",")
    if name in ("--rt-type", "--frag", "-f", "--fragment"):
        return False
    if name == "--mark":
        return value.split("/")[0] in ("0", "0x0")
    if name in ("-s", "-d", "--source", "--destination") and value.startswith(("127.", "::1/")):
        return False
    if name in ("-m", "--match", "--comment", "--reject-with", "--log-prefix", "--log-level", "-A"):
        return UNKNOWN
    return None


# Options with a text of somebody's, whatever it looks like
TEXTS = ("--comment", "--log-prefix", "--nflog-prefix", "--string", "--hex-string")


def iptables_rule(words, packet):
    """One line of iptables-save, from "-A" on."""
    matches, action, target, no, at = [], None, None, False, 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "!":
            no = True
            continue
        value = ""
        if at < len(words) and (word in TEXTS or (not words[at].startswith("-") and words[at] != "!")):
            value = words[at]
            at += 1
        if word in ("-j", "-g", "--jump", "--goto"):
            action = {"ACCEPT": "accept", "DROP": "drop", "REJECT": "drop", "RETURN": "return"}.get(value)
            if value in ("NFQUEUE", "QUEUE"):
                # whoever listens decides, and whoever does not drops
                action = "drop"
                matches.append(None)
            elif action is None:
                action, target = ("goto" if word in ("-g", "--goto") else "jump"), value
            continue
        match = iptables_option(word, value, packet)
        if match is not UNKNOWN:
            matches.append((not match) if no and match is not None else match)
        no = False
    return Rule(matches, action, target)


def iptables_bases(saved, packet, what="iptables"):
    """The base chains that a packet passes, of what iptables-save has printed."""
    wanted = ("PREROUTING", "INPUT") if packet.incoming else ("OUTPUT", "POSTROUTING")
    bases, chains, table = [], {}, ""
    for line in saved.split("\n"):
        if line.startswith("*"):
            table, chains = line[1:], {}
        elif line.startswith(":"):
            name, policy = line[1:].split()[:2]
            chains[name] = []
            if name in wanted and policy != "-":
                bases.append(Base(f"{what}, table {table}, chain {name}", chains, name, policy.lower()))
        elif line.startswith("-A "):
            try:
                words = shlex.split(line)
            except ValueError:
                # a text with a line's end in it
                chains.setdefault(line.split()[1], []).append(Rule([None], "drop", None))
                continue
            chains.setdefault(words[1], []).append(iptables_rule(words[2:], packet))
    for base in bases:
        for rules in base.chains.values():
            # A target that is no chain is an extension: LOG, MARK. The packet goes on.
            rules[:] = [rule._replace(action=None) if rule.action in ("jump", "goto") and rule.target not in base.chains
                        else rule for rule in rules]
    return bases


# --- both --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def saved_by(program):
    """What a program says of its rules, once; hundreds of thousands take it minutes."""
    return system.run(program, timeout=300)


@functools.lru_cache(maxsize=None)
def ruleset_of_nft():
    """Likewise nft, as JSON."""
    return system.run_json("nft", "-j", "list", "ruleset", timeout=300)


def bases_here(packet):
    """All base chains of this network namespace that a packet passes, and what could not be read, each as words."""
    if os.geteuid() != 0:
        return [], ["only root can see what the firewall does"]
    bases, unread, own = [], [], set()
    save = "iptables-save" if packet.family == "ip" else "ip6tables-save"
    legacy = save.replace("-save", "-legacy-save")
    for program in (save, legacy):
        saved = saved_by(program)
        if saved is None and system.program(program):
            unread.append(f"{program} fails")
        elif saved:
            own |= tables_of_iptables(saved)
            bases += [base for base in iptables_bases(saved, packet, program[:-5]) if base not in bases]
    if not system.program(save) and not system.program(legacy) and system.read(f"/proc/net/{packet.family}_tables_names"):
        unread.append(f"there are rules of iptables, and no {save} to read them")
    ruleset = ruleset_of_nft()
    if ruleset is not None:
        bases += nft_bases(ruleset, packet, own)
    elif system.program("nft"):
        unread.append("nft fails")
    elif os.path.isdir("/sys/module/nf_tables") and not own:
        unread.append("nft is not installed, and nftables is in use")
    return bases, unread


def judge(bases):
    """What becomes of packets, and where.

    (accept, None): all pass; (drop, where): none; (some, where): some are dropped, but not those of an ordinary peer, of
    whom no rule speaks; (few, where): only some pass.
    """
    some = few = None
    for base in bases:
        found = of_base(base)
        if found == {"drop"}:
            return "drop", base.where
        if "drop" not in found:
            continue
        if of_base(base, doubt=False) == {"accept"}:
            some = some or base.where
        else:
            few = few or base.where
    return ("few", few) if few else ("some", some) if some else ("accept", None)
