# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""sroce_check_random.py FOLDER A B SECONDS [SEED] : random rules of nftables in network namespace A.

For each set of rules sroce-check (in FOLDER) is asked what becomes of packets between A and B, and the kernel by sending
them. Where sroce-check is certain ("accept" or "drop") they have to agree. veth0 is in both namespaces, with the addresses
that lib.sh gives to hosts. Prints what program_verdicts() of lib.sh takes, and the seed of each set that it was wrong about.
"""
import ctypes
import ipaddress
import json
import os
import random
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
# pylint: disable=wrong-import-position
from sroce_tools.nftables import nft_bases  # noqa: E402
from sroce_tools.rules import Packet, verdict  # noqa: E402

A, B, SECONDS = sys.argv[2], sys.argv[3], float(sys.argv[4])
PORT = 4791
FAMILIES = {"ip": socket.AF_INET, "ip6": socket.AF_INET6}
# What waits for a packet that comes: veth needs no time, a machine that does something else some
PATIENCE = 0.25
MOST_WRONG = 12

# Each as it stands in a rule; OWN and PEER are addresses, kernels that do not know one leave it out. Not whose a socket is:
# RoCE's packets are nobody's, and those that are sent here are root's
MATCHES = """
udp dport 4791; udp dport 53; udp dport { 53, 4791 }; udp dport 4000-5000; udp dport != 4791; udp dport != 53
udp dport >= 4791; udp dport > 4791; udp dport <= 4791; udp dport & 0xff00 == 0x1200; udp dport @ports; udp dport != @ports
udp dport @none; udp sport 1024-65535; udp sport < 1024; udp sport 53; udp sport != 53; udp length 9; udplite dport 4791
tcp dport 22; tcp dport != 22; tcp flags & (syn | ack) == syn; tcp option maxseg missing; tcp option maxseg exists; dccp dport 4791
th dport 4791; th dport != 4791; @th,16,16 4791
meta l4proto udp; meta l4proto { tcp, udp }; meta l4proto != udp; meta l4proto != tcp; meta l4proto icmp
meta nfproto ipv4; meta nfproto ipv6; meta nfproto != ipv4; meta protocol ip; meta protocol != ip6; meta protocol { ip, ip6 }
meta mark 0; meta mark 1; meta mark & 0xff == 0; meta mark & 1 != 0; meta mark != 0x2; meta length > 20; meta iifkind veth
meta pkttype host; meta pkttype != host; meta pkttype broadcast
ip protocol udp; ip protocol != udp; ip version 4; ip hdrlength 5; ip frag-off & 0x1fff != 0
ip option lsrr exists; ip option lsrr missing
ip daddr OWN; ip daddr != OWN; ip daddr 172.17.0.2; ip daddr { OWN, 10.3.0.0/16 }; ip daddr != { NET, 10.3.0.0/16 }
ip daddr & 255.255.255.0 == NET0; ip daddr @own; ip daddr != @own
ip saddr OWN; ip saddr != OWN; ip saddr PEER; ip saddr != PEER; ip saddr @none4; ip saddr != @none4
ip6 nexthdr udp; ip6 nexthdr tcp; ip6 daddr NET6; ip6 daddr fd97::/64; ip6 daddr != OWN6; exthdr frag exists; exthdr frag missing
iifname veth0; iifname "veth*"; iifname != "lo"; iifname lo; iifname { lo, veth0 }; iif veth0; oifname veth0; oifname != veth0; oif lo
ct state new; ct state established,related; ct state invalid; ct state { new, established }; ct state != new; ct state untracked
ct state != { established, related }; ct state new,untracked; ct status dnat; ct status != dnat; ct direction original
ct direction reply; ct mark 0; ct mark 1; ct mark != 0; ct l3proto ipv4
fib daddr type local; fib daddr type != local; fib daddr type { local, unicast }; fib saddr type local; fib saddr type unicast
fib saddr . iif oif missing; fib saddr . iif oif exists; rt type 0; socket transparent 1
ip daddr . udp dport { OWN . 4791 }; ip daddr . udp dport { NET . 4000-5000 }; ip daddr . udp dport != { NET . 4000-5000 }
iifname . udp dport { veth0 . 4791 }; meta l4proto . th dport { udp . 4791 }; meta l4proto . th dport { tcp . 4791, udp . 53 }
"""
# What a rule does. Chains call each other in one direction only: a base chain x and y, and x y.
VERDICTS = """
accept; accept; drop; drop; return; counter; counter accept; log; jump x; jump y; goto y; meta mark set 1; ct mark set 1
meta mark set ct mark; reject; reject with icmp port-unreachable; reject with icmpv6 no-route; reject with icmpx no-route
reject with tcp reset; reject with icmp host-unreachable
udp dport vmap { 4791 : accept, 53 : drop }; udp dport vmap { 53 : accept, * : drop }; udp dport vmap { 4000-4800 : jump y, 53 : drop }
udp dport vmap @vm; ct state vmap { new : drop, established : accept }; ct state vmap { established : accept, invalid : drop }
iifname vmap { lo : accept, veth0 : jump x }; iifname vmap { veth0 : continue, * : drop }
ip daddr . udp dport vmap { OWN . 4791 : drop, OWN . 53 : accept }
"""
SETS = """
 set ports { type inet_service; flags interval; elements = { 53, 4000-5000 }; }
 set own { type ipv4_addr; elements = { OWN }; }
 set none { type inet_service; }
 set none4 { type ipv4_addr; }
"""
MAP = " map vm { type inet_service : verdict; elements = { 4791 : goto y, 53 : drop }; }\n"


def run(*command, **options):
    """Run a command; its output, with what it complains of."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False, **options)


def nft(text, *options):
    """Have nft read rules in A."""
    return run("ip", "netns", "exec", A, "nft", *options, "-f", "-", input=text)


def address(namespace, family):
    """The address of veth0 that is not link-local, with its prefix."""
    found = json.loads(run("ip", "-n", namespace, "-j", "-" + family[2:] if family == "ip6" else "-4", "addr", "show", "dev", "veth0").stdout)
    return next(ipaddress.ip_interface(f"{one['local']}/{one['prefixlen']}") for one in found[0]["addr_info"] if one["scope"] == "global")


def introduce(namespace, other):
    """Tell a host the other one's MAC address: rules that drop what asks for it are not what the packets are about."""
    mac = json.loads(run("ip", "-n", other, "-j", "link", "show", "dev", "veth0").stdout)[0]["address"]
    for family in FAMILIES:
        run("ip", "-n", namespace, "neigh", "replace", str(address_of[other, family]), "lladdr", mac, "nud", "permanent", "dev", "veth0")


class Names(dict):
    """What stands for addresses in the lists above."""

    def __init__(self):
        own, own6 = address(A, "ip"), address(A, "ip6")
        super().__init__(OWN6=own6.ip, NET6=own6.network, OWN=own.ip, NET0=own.network.network_address, NET=own.network,
                         PEER=address(B, "ip").ip)

    def put(self, text):
        """A text with addresses in it."""
        for name in sorted(self, key=len, reverse=True):
            text = text.replace(name, str(self[name]))
        return text


def entries(text):
    """The list that a text is."""
    return [one.strip() for line in text.strip().splitlines() for one in line.split("; ") if one.strip()]


# --- the kernel's opinion -------------------------------------------------------------------------------------

class Wire:
    """Sockets in both namespaces, between which packets either pass or do not."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.receivers = {(namespace, family): self.socket(namespace, family, PORT) for namespace in (A, B) for family in FAMILIES}
        self.sport = 0xC000

    def enter(self, handle):
        """Sockets are of the namespace where they are made."""
        if self.libc.setns(handle, 0):
            raise OSError(ctypes.get_errno(), "setns")

    def socket(self, namespace, family, port):
        """A UDP socket with a port, in a namespace."""
        handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        self.enter(handle)
        try:
            made = socket.socket(FAMILIES[family], socket.SOCK_DGRAM)
            if family == "ip6":
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(("", port))
            made.setblocking(False)
        finally:
            self.enter(self.home)
            os.close(handle)
        return made

    def passes(self, packet):
        """Send it: does it arrive?"""
        source, target = (B, A) if packet.incoming else (A, B)
        self.sport = self.sport + 1 if self.sport < 0xFFF0 else 0xC000
        sender = self.socket(source, packet.family, self.sport)
        try:
            sender.sendto(b"x", (str(address_of[target, packet.family]), PORT))
        except OSError:
            return False
        finally:
            sender.close()
        return self.comes(self.receivers[target, packet.family])

    def comes(self, receiver):
        """Is there one from that port?"""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if receiver.recvfrom(16)[1][1] == self.sport:
                    return True
            except BlockingIOError:
                time.sleep(0.004)
        return False


# --- rules -------------------------------------------------------------------------------------------------------

def known(matches):
    """Those that this kernel and this nft know."""
    text = "table inet t {%s chain p { type filter hook prerouting priority 0;\n  %s accept\n }\n}\n"
    return [one for one in matches if nft(names.put(text % (SETS, one)), "-c").returncode == 0]


def doing(rng, chain, raw):
    """What a rule of this chain does."""
    action = rng.choice(entries(VERDICTS) + ["notrack"] * (4 if raw else 0))
    if chain == "y" and ("jump" in action or "goto" in action or "@vm" in action):
        return "drop"
    if chain == "x" and "jump x" in action:
        return "jump y"
    return action


def rules(rng, chain, raw=False):
    """Some rules."""
    return "".join("  " + " ".join(rng.sample(matches, rng.randrange(3)) + [doing(rng, chain, raw)]) + "\n" for _ in range(rng.randrange(5)))


def base(rng, number):
    """A base chain."""
    hook = rng.choice(["prerouting", "input", "input", "output", "postrouting"])
    priority = rng.choice([-300, 0, 10] if hook in ("prerouting", "output") else [0, 10])
    policy = rng.choice(["accept", "accept", "drop"])
    return f" chain b{number} {{ type filter hook {hook} priority {priority}; policy {policy};\n{rules(rng, 'b', priority == -300)} }}\n"


def ruleset(rng):
    """A table with some base chains, and two that they call."""
    text = f"table {rng.choice(['inet', 'inet', 'ip', 'ip6'])} t {{{SETS} chain y {{\n{rules(rng, 'y')} }}\n{MAP}"
    text += f" chain x {{\n{rules(rng, 'x')} }}\n" + "".join(base(rng, i) for i in range(rng.randrange(1, 4)))
    return names.put(text + "}\n")


def judged(printed, packet):
    """What sroce-check says."""
    return verdict(lambda one: nft_bases(printed, one), packet)[0]


def agree(printed, packet):
    """Do both say the same, as far as sroce-check is certain? A packet that did not come may have been late."""
    said = judged(printed, packet)
    came = wire.passes(packet)
    seen[said, came] = seen.get((said, came), 0) + 1
    return said not in ("accept", "drop") or came == (said == "accept") or wire.passes(packet) == (said == "accept")


def loaded(text):
    """Rules as the kernel has taken them: without those that are not for their table or hook. None: it takes nothing."""
    lines = text.splitlines()
    for _ in range(50):
        answer = nft("\n".join(["flush ruleset", *lines, ""]))
        if answer.returncode == 0:
            return "\n".join(lines)
        # The first line there is ours
        bad = {int(one) - 2 for one in re.findall(r"^/dev/stdin:(\d+):", answer.stdout, re.MULTILINE)}
        bad = {one for one in bad if one < len(lines) and lines[one].startswith("  ")}
        if not bad:
            return None
        lines = [line for one, line in enumerate(lines) if one not in bad]
    return None


def one_set(seed):
    """Try the set of rules with this number; how many packets it was wrong about, None: the kernel does not take them."""
    text = loaded(ruleset(random.Random(seed)))
    if text is None:
        return None
    printed = json.loads(run("ip", "netns", "exec", A, "nft", "-j", "list", "ruleset").stdout)
    wrong = [packet for packet in PACKETS if not agree(printed, packet)]
    for packet in wrong:
        print(f"WRONG: seed {seed}, {packet.family}, {'in' if packet.incoming else 'out'}: {judged(printed, packet)}")
        print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)
    return len(wrong)


names = Names()
address_of = {(namespace, family): address(namespace, family).ip for namespace in (A, B) for family in FAMILIES}
PACKETS = [Packet(family, incoming, "veth0", address_of[A, family]) for family in FAMILIES for incoming in (True, False)]
introduce(A, B)
introduce(B, A)
wire, seen = Wire(), {}
matches = known(entries(MATCHES))
first = int(sys.argv[5]) if len(sys.argv) > 5 else random.SystemRandom().randrange(1 << 31)
print(f"# seed {first}, {len(matches)} of {len(entries(MATCHES))} matches are known here", flush=True)
if not all(wire.passes(packet) or wire.passes(packet) for packet in PACKETS):
    sys.exit("without rules packets do not pass")
end, sets, refused, bad, number = time.monotonic() + SECONDS, 0, 0, 0, first
while time.monotonic() < end and bad < MOST_WRONG:
    result = one_set(number)
    sets, refused, bad, number = sets + 1, refused + (result is None), bad + (result or 0), number + 1
nft("flush ruleset\n")
certain = sum(n for (said, _), n in seen.items() if said in ("accept", "drop"))
print(f"# {sets} sets of rules, {refused} of them refused; {sum(seen.values())} packets, {certain} of them with a certain verdict")
both = seen.get(("accept", True)) and seen.get(("drop", False))
print(("ok" if both else "WRONG") + ": it is certain of some packets that pass, and of some that do not")
if not bad:
    print("ok: where it is certain it is right")
print(f"{bad} wrong")
