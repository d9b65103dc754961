# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Rules of a firewall in a simple form, and what becomes of a RoCE packet that goes through them.

The rules of nftables and of iptables become the same: chains of rules, each with what it matches and what it does. A
match is True, False or, where that depends on what is not known here (a peer's address, a limit), None; the contrary of
that is UNLESS, which matches an ordinary peer, of whom no rule speaks. A packet goes through them as it would through the
kernel, and what can become of it is a set of outcomes.
"""
import ipaddress
from collections import namedtuple

PORT = 4791
# What rdma_get_udp_sport() of the kernel makes, and NICs likewise
SOURCE_PORTS = range(0xC000, 0x10000)

# family: "ip" or "ip6"; incoming: through the hooks of what comes in by the netdev, or of what leaves by it;
# address: this host's; below: netdevs that it passes, too, under its own; state: what conntrack says of it. Of RoCE
# packets all are "new": the two directions have UDP ports that do not belong to each other, so a rule for established
# connections never lets them pass. mark: None if nobody knows
Packet = namedtuple("Packet", "family incoming netdev address below state mark", defaults=(None, (), "new", 0))
# matches: True, False and None; action: accept, drop, return, jump, goto, an effect, or None; target: a chain
Rule = namedtuple("Rule", "matches action target")
# where: for people; policy: of a base chain
Base = namedtuple("Base", "where chains name policy")

UNLESS = "unless that depends on more"

# What a rule does to a packet that goes on, and that later rules may ask for
EFFECTS = {"notrack", "mark"}
# From good to bad
VERDICTS = ("accept", "some", "few", "drop")


def all_of(matches):
    """Do all match? None, UNLESS: perhaps."""
    return next((one for one in (False, None, UNLESS) if one in matches), True)


def any_of(matches):
    """Does one match? None, UNLESS: perhaps."""
    return next((one for one in (True, UNLESS, None) if one in matches), False)


def not_of(match):
    """The contrary."""
    return {None: UNLESS, UNLESS: None}.get(match, not match)


def before_tracking(packet):
    """The packet as rules see it that come before connection tracking, for whom it belongs to nothing."""
    return packet._replace(state="invalid") if packet.state == "new" else packet


def address_is(address, first, last=None):
    """Is an address the first, in it (a network), or between the two? None if nobody can tell."""
    if address is None:
        return None
    try:
        if last is None:
            return address in ipaddress.ip_network(first, strict=False)
        return ipaddress.ip_address(first) <= address <= ipaddress.ip_address(last)
    except (ValueError, TypeError):
        return None


def number_is(numbers, low, high):
    """Is a number, one of a range, between two others?"""
    if low <= numbers[0] and numbers[-1] <= high:
        return True
    return False if high < numbers[0] or low > numbers[-1] else None


def perhaps(matches):
    """Accepted or dropped, or neither: nobody knows."""
    return [Rule(matches + [None], "accept", None), Rule(matches + [None], "drop", None)]


def outcomes(chains, name, known, doubt=True, last=None, depth=0):
    """What can become of the packet in a chain: accept, drop, effects, and continue for the end of the chain.

    known: what was found out before, by chain; doubt: without it, what may match is what does for an ordinary peer;
    last: an effect after which nothing is asked any more
    """
    if name in known:
        return known[name]
    found, over = set(), False
    # The kernel has no loops and no more than 16 levels
    for rule in chains.get(name, ()) if depth < 17 else ():
        hit = all_of(rule.matches)
        if not doubt:
            hit = hit in (True, UNLESS)
        if hit is False or rule.action is None:
            continue
        if rule.action in ("jump", "goto"):
            below = outcomes(chains, rule.target, known, doubt, last, depth + 1)
            found |= below if rule.action == "goto" else below - {"continue"}
            over = rule.action == "goto" or "continue" not in below
        else:
            found.add("continue" if rule.action == "return" else rule.action)
            over = rule.action not in EFFECTS or rule.action == last
        over = over and hit is True
        if over:
            break
    known[name] = found if over else found | {"continue"}
    return known[name]


def of_base(base, doubt=True):
    """Accept or drop, or both, in a base chain, whose end is its policy."""
    found = outcomes(base.chains, base.name, {}, doubt)
    return {base.policy if outcome == "continue" else outcome for outcome in found - EFFECTS}


def has_effect(base, effect):
    """Has a base chain this effect on the packet? None: perhaps."""
    if effect not in outcomes(base.chains, base.name, {}):
        return False
    always = outcomes(base.chains, base.name, {}, last=effect) - EFFECTS <= {"drop"}
    return True if always else None


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


def verdict(bases_of, packet):
    """The same of all that rules do to a packet; bases_of: the base chains that a packet passes.

    What conntrack says of it, and its mark, are what other rules have made of them.
    """
    bases = bases_of(packet)
    untracked = any_of([has_effect(base, "notrack") for base in bases])
    marked = any_of([has_effect(base, "mark") for base in bases])
    states = {True: ("untracked",), None: ("new", "untracked"), False: ("new",)}[untracked]
    if marked is False and untracked is False:
        return judge(bases)
    found = [judge(bases_of(packet._replace(state=state, mark=0 if marked is False else None))) for state in states]
    worst = max(found, key=lambda one: VERDICTS.index(one[0]))
    # Some are tracked and others not, and only the ones are dropped
    return ("few", worst[1]) if worst[0] == "drop" and any(one[0] != "drop" for one in found) else worst
