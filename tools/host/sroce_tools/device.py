# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Checks of one device: its netdev, its addresses, what the firewall lets through, and what its counters tell."""
import os
import re
import shlex
from collections import namedtuple

from . import firewall, system
from .finding import FAULT, INFO, OK, WARNING, Finding
from .growth import Growth, share
from .rules import Packet

# Headers that a RoCE packet has around its payload, at most; then the smallest MTU of a netdev for each path MTU
HEADERS = 96
PATH_MTUS = (4096, 2048, 1024, 512, 256)
# Of the netdev: packets that it had no room for
LOST = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")

# Counters that speak of something wrong. least: how many since the device was made are worth a word; of: the packets that
# they are compared with; often: they are wrong only if there are more than one in a thousand of these; level: while they grow
Sign = namedtuple("Sign", "name least of often level text advice")
SIGNS = (
    Sign("rx_icrc_encapsulated", 1, "rdma_rx_packets", False, WARNING,
         "packets had a wrong ICRC: something on the way changes or breaks them, or somebody forges them",
         "if all have: module parameter gso=0 at the sender, whose NIC may count IPv4 identifications wrongly"),
    Sign("rx_malformed_packets", 1, "rdma_rx_packets", False, WARNING, "packets were malformed", None),
    Sign("out_of_buffer", 100, "rdma_rx_packets", True, WARNING, "messages found no receive work request",
         "the application posts too few, or too late"),
    Sign("tx_dropped_packets", 100, "rdma_tx_packets", True, WARNING,
         "packets could not be sent: no route, no memory, or a firewall here", None),
    Sign("rx_no_qp_packets", 1000, "rdma_rx_packets", True, INFO, "packets were for queue pairs that there are none of", None),
    Sign("rx_wrong_path_packets", 100, "rdma_rx_packets", True, WARNING, "packets came from addresses that are not the peer's",
         "is there NAT on the way, or a peer with several addresses?"),
    Sign("req_transport_retries_exceeded", 1, None, False, WARNING, "queue pairs have given up on their peer", None),
    Sign("req_rnr_retries_exceeded", 1, None, False, WARNING, "queue pairs have given up on a peer that posts no receives", None),
    Sign("rp_cnp_ignored", 1, None, False, INFO, "notifications of congestion were ignored",
         "echo 2 >{port}/cc_params/rp_enable"),
)


def mtu_of(netdev):
    """A netdev's MTU, and the largest payload of a RoCE packet for it; 0 for what is not there."""
    mtu = system.read_number(f"{firewall.NET}/{netdev}/mtu", 0)
    return mtu, next((size for size in PATH_MTUS if size + HEADERS <= mtu), 0)


def names_of(some, packets):
    """Which of all packets of a device some are, for people: their families, or the addresses if not all of a family."""
    names = []
    for family, name in (("ip", "IPv4"), ("ip6", "IPv6")):
        ours = [one for one in some if one.family == family]
        alike = [one for one in packets if ours and one._replace(address=None) == ours[0]._replace(address=None)]
        names += [name] if ours and len(ours) == len(alike) else [str(one.address) for one in ours]
    return " and ".join(names)


class Checks:
    """The checks of a device; each yields findings."""

    def __init__(self, device):
        self.device, self.netdev = device, device.netdev or ""
        self.net = f"/sys/class/net/{self.netdev}"
        self.quoted = shlex.quote(self.netdev)
        self.growth, self.lost = Growth(device.counters), Growth(self.statistics)

    def is_here(self):
        """Is its netdev in this network namespace?"""
        return bool(self.netdev) and os.path.exists(self.net)

    def statistics(self):
        """What the netdev counts."""
        return {name: system.read_number(f"{self.net}/statistics/{name}", 0) for name in (*LOST, "rx_packets")}

    def found(self, level, check, text, advice=None):
        """A finding about this device."""
        return Finding(level, f"{self.device.name} on {self.netdev or '?'}", check, text, advice)

    def ethtool(self, option):
        """What ethtool prints for an option; a name that it takes for an option itself is none for it."""
        return system.run("ethtool", option, self.netdev) if not self.netdev.startswith("-") else None

    # --- is it up? ------------------------------------------------------------------------------------------

    def state(self):
        """The port's state follows the netdev's."""
        if not self.is_here():
            yield self.found(INFO, "state", "its netdev is in another network namespace: ip netns exec NAME sroce-check")
        elif self.device.state.upper() == "ACTIVE":
            yield self.found(OK, "state", "the port is active")
        elif not system.read_number(f"{self.net}/flags", 0) & 1:
            yield self.found(FAULT, "state", f"{self.netdev} is down", f"ip link set {self.quoted} up")
        elif system.read_number(f"{self.net}/carrier", 0):
            yield self.found(FAULT, "state", f"the port is {self.device.state or 'in no state'}, though {self.netdev} is up and has a carrier")
        else:
            yield self.found(FAULT, "state", f"{self.netdev} has no carrier", "look at the cable and at the other end")
        yield from self.belongs()

    def belongs(self):
        """What a bridge's or a bond's netdev receives is for that one. (A VRF leaves it to the netdev and its addresses.)"""
        if not os.path.exists(f"{self.net}/master") or firewall.is_in_vrf(self.netdev):
            return
        master = os.path.basename(os.path.realpath(f"{self.net}/master"))
        own = sorted({str(gid.address) for gid in self.device.gids() if gid.netdev in (None, self.netdev) and not gid.address.is_link_local})
        if own:
            yield self.found(WARNING, "master", f"{self.netdev} belongs to {master}, which gets its packets: none come to {', '.join(own)}",
                             f"have these addresses on {master}: they are the device's there, too")
        else:
            yield self.found(INFO, "master", f"{self.netdev} belongs to {master}: the device has the addresses of {master}")

    def place(self, gid):
        """The netdev of a GID if that is not the device's, and whether it can be used there: words, level, advice."""
        if gid.netdev in (None, self.netdev):
            return "", OK, None
        if not os.path.exists(f"{firewall.NET}/{gid.netdev}"):
            return f" on {gid.netdev}, which is in another network namespace: it cannot be used", INFO, None
        if not system.read_number(f"{firewall.NET}/{gid.netdev}/flags", 0) & 1:
            return f" on {gid.netdev}, which is down", WARNING, f"ip link set {shlex.quote(gid.netdev)} up"
        return f" on {gid.netdev}", OK, None

    def addresses(self):
        """Which GID an application is to use."""
        gids = [gid for gid in self.device.gids() if gid.version == 2]
        v4 = [gid for gid in gids if gid.address.version == 4]
        v6 = [gid for gid in gids if gid.address.version == 6 and not gid.address.is_link_local]
        for gid in v4 + v6:
            on, level, advice = self.place(gid)
            yield self.found(level, "gid", f"GID {gid.index} is {gid.address}{on}", advice)
        usable = [gid for gid in v4 if self.place(gid)[1] == OK]
        if not gids:
            yield self.found(FAULT, "gid", "it has no GID", "rdma system show; has the netdev's namespace another device?")
        elif not v4 and not v6:
            yield self.found(WARNING, "gid", f"{self.netdev} has no address: only GID {gids[0].index}, link-local, can be used",
                             None if os.path.exists(f"{self.net}/master") else f"ip addr add ADDRESS/LENGTH dev {self.quoted}")
        elif usable:
            yield self.found(INFO, "gid", f"perftest and others that ask for an index: -x {usable[0].index} (or -g, --gid-index)")
        both = [gid for gid in self.device.gids() if gid.version == 1]
        if both:
            yield self.found(INFO, "gid", "it has GIDs of RoCE v1, too: both ends of a connection want the same version")

    # --- the way out and in -----------------------------------------------------------------------------------

    def mtu(self):
        """The largest payload of a packet."""
        mtu, path_mtu = mtu_of(self.netdev)
        if not path_mtu:
            yield self.found(FAULT, "mtu", f"{self.netdev} has MTU {mtu}, too little for any RoCE packet",
                             f"ip link set {self.quoted} mtu 1500")
        elif path_mtu == 4096:
            yield self.found(OK, "mtu", f"MTU {mtu}: packets carry {path_mtu} bytes")
        else:
            yield self.found(INFO, "mtu", f"MTU {mtu}: packets carry {path_mtu} bytes, of 4096 that are possible",
                             "faster with 4200 or more, on both hosts and every switch between: "
                             f"ip link set {self.quoted} mtu 9000")
        yield from self.smaller_mtus(mtu, path_mtu)

    def smaller_mtus(self, mtu, path_mtu):
        """VLANs, and what else has GIDs of the device's, may have a smaller MTU; the port tells that of the device's netdev."""
        netdevs = {gid.netdev for gid in self.device.gids() if gid.netdev and not gid.address.is_link_local}
        for netdev in sorted(netdevs - {self.netdev}):
            its, payload = mtu_of(netdev)
            if its and payload < path_mtu:
                yield self.found(WARNING, "mtu", f"{netdev} has MTU {its}, " + (
                    f"for packets of {payload} bytes: rdma_cm knows that, but whoever takes the port's {path_mtu} sends packets "
                    "that do not pass" if payload else "too little for any RoCE packet"),
                    f"ip link set {shlex.quote(netdev)} mtu {mtu}" + (
                        f"\nor applications without rdma_cm are told: path MTU {payload}" if payload else ""))

    def packets(self):
        """A packet for each address and direction; of link-local addresses only if there are no others."""
        gids = [gid for gid in self.device.gids() if gid.version == 2]
        gids = [gid for gid in gids if not gid.address.is_link_local] or gids
        for netdev, address in sorted({(gid.netdev or self.netdev, gid.address) for gid in gids}, key=str):
            if os.path.exists(f"/sys/class/net/{netdev}"):
                family = "ip" if address.version == 4 else "ip6"
                for incoming in (True, False):
                    yield Packet(family, incoming, netdev, address, firewall.below(netdev, self.netdev))

    def walls(self):
        """Does the firewall let RoCE packets in and out?"""
        packets, verdicts, unread = list(self.packets()), {}, []
        for packet in packets:
            unread += firewall.unread(packet.family)
            for netdev in (packet.netdev, *packet.below):
                unread += firewall.beside_rules(netdev, packet.incoming)
            if firewall.is_in_vrf(packet.netdev):
                unread.append(f"{packet.netdev} is in a VRF, by whose name rules may know it")
            verdict = firewall.verdict_here(packet)
            if not verdict:
                unread.append("there are rules that are not understood")
                continue
            verdicts.setdefault((*verdict, packet.incoming, packet.netdev), []).append(packet)
        unread = list(dict.fromkeys(unread))
        for one in unread:
            yield self.found(INFO, "firewall", f"not all that a firewall may do is known: {one}")
        for (outcome, where, incoming, netdev), same in verdicts.items():
            way = "into" if incoming else "out of"
            if outcome == "accept":
                continue
            what, level = {"drop": ("drops RoCE packets", FAULT), "few": ("lets RoCE packets of some peers only", WARNING),
                           "some": ("drops RoCE packets of some peers", INFO)}[outcome]
            yield self.found(level, "firewall", f"the firewall {what} {way} {netdev} ({names_of(same, packets)}; {where})",
                             None if outcome == "some" else
                             f"let UDP port 4791 through {way} it, for the peers; \"established\" does not match it.\n"
                             "With firewalld: firewall-cmd --permanent --add-port=4791/udp && firewall-cmd --reload; "
                             "with ufw: ufw allow 4791/udp\n"
                             "With rules of your own: in that chain, before what drops it")
        if packets and not unread and all(key[0] in ("accept", "some") for key in verdicts):
            yield self.found(OK, "firewall", "the firewall lets UDP port 4791 in and out")

    # --- what the netdev does -----------------------------------------------------------------------------------

    def offloads(self):
        """GRO and checksums make packets cheaper to receive."""
        if not system.program("ethtool"):
            yield self.found(INFO, "ethtool", "ethtool is not installed: offloads, rings and the spreading over queues are not looked at")
        features = dict(re.findall(r"^\s*([a-z0-9-]+): (on|off)", self.ethtool("-k") or "", re.MULTILINE))
        if features.get("generic-receive-offload") == "off":
            # Netdevs without hardware may hand on buffers as they come, with several packets in them
            level = WARNING if os.path.exists(f"{self.net}/device") else INFO
            yield self.found(level, "gro", f"{self.netdev} does not put received packets together (GRO)",
                             f"ethtool -K {self.quoted} gro on")
        if features.get("rx-checksumming") == "off":
            yield self.found(INFO, "checksum", "the processor checks the checksums of received packets")

    def queues(self):
        """A queue for each flow needs a hash with ports in it, and room in the ring."""
        queues = [name for name in system.entries(f"{self.net}/queues") if name.startswith("rx-")]
        hashed = self.ethtool("-n") if len(queues) < 2 or self.netdev.startswith("-") else \
            system.run("ethtool", "-n", self.netdev, "rx-flow-hash", "udp4")
        if len(queues) > 1 and hashed and "L4 bytes" not in hashed:
            yield self.found(WARNING, "rss", f"{self.netdev} spreads UDP over its {len(queues)} queues by addresses alone: "
                             "all of a peer's packets come to one processor",
                             f"ethtool -N {self.quoted} rx-flow-hash udp4 sdfn")
        rings = self.ethtool("-g") or ""
        sizes = [int(number) for number in re.findall(r"^RX:\s+(\d+)", rings, re.MULTILINE)]
        total, now = self.lost.look(), self.lost.of(*LOST)
        lost = sum(total[name] for name in LOST)
        if lost:
            longer = len(sizes) > 1 and sizes[1] < sizes[0]
            yield self.found(WARNING if now else INFO, "ring", f"{self.netdev} has lost {lost} packets since it is there"
                             f"{share(lost, total['rx_packets'] + lost)}, for want of room in its rings; {self.lost.lately(now)}",
                             f"ethtool -G {self.quoted} rx {sizes[0]}" if longer else None)

    def settings(self):
        """How it answers congestion and loss."""
        on = {0: "off", 1: "on", 2: "where the peer tells of marks"}
        marks = self.device.setting("cc_params/rp_enable")
        if marks is not None:
            yield self.found(INFO, "ecn", f"slows down for a network that marks (ECN): {on.get(marks, marks)}; tells senders of marks: "
                             f"{on.get(self.device.setting('cc_params/np_enable'), '?')}")
        repeats = self.device.setting("roce_accl/selective_repeat_en")
        if repeats is not None:
            yield self.found(INFO, "loss", f"sends again only what was lost: {on.get(repeats, repeats)}")
        pauses = None if self.netdev.startswith("-") else system.run("dcb", "pfc", "show", "dev", self.netdev, "prio-pfc")
        if pauses and ":on" in pauses:
            yield self.found(INFO, "pfc", f"pauses for: {', '.join(re.findall(r'([0-7]):on', pauses))} (PFC priorities)")

    # --- what has happened ----------------------------------------------------------------------------------------

    def resent(self):
        """Packets that were lost, here or there."""
        total, names = self.growth.look(), ("rdma_tx_packets", "retrans_packets", "local_ack_timeout_err")
        for level, (sent, resent, timeouts), when in (
                (WARNING, [self.growth.of(name) for name in names], f"in the last {self.growth.seconds:.1f} s"),
                (INFO, [total.get(name, 0) for name in names], "since the device was made")):
            if resent > 5 and resent * 1000 > sent:
                yield self.found(level, "resent", f"{resent} of {sent} packets were sent again {when}{share(resent, sent)}, "
                                 f"and {timeouts} times after an ACK timeout",
                                 "the network or the receiver loses packets: Documentation/networks.md")
                return

    def sign(self, sign):
        """A counter that speaks of something wrong."""
        total, now = self.growth.look().get(sign.name, 0), self.growth.of(sign.name)
        packets = self.growth.of(sign.of) if sign.of else 0
        grows = now and (not sign.often or now * 1000 > packets)
        if grows or total >= sign.least:
            whole = total + self.growth.look().get(sign.of, 0) if sign.of else 0
            yield self.found(sign.level if grows else INFO, sign.name,
                             f"{total} {sign.text}, since the device was made{share(total, whole)}; {self.growth.lately(now)}",
                             sign.advice and sign.advice.format(port=shlex.quote(self.device.port)))

    def counters(self):
        """What has gone wrong, and does so now."""
        if not self.growth.look():
            yield self.found(INFO, "counters", "its counters cannot be read here: rdma (iproute2) tells them in every namespace")
        yield from self.resent()
        for sign in SIGNS:
            yield from self.sign(sign)

    def check(self):
        """All of it, unless it goes meanwhile: then nothing of that was right."""
        found = list(self.state())
        for one in (self.addresses, self.mtu, self.walls, self.offloads, self.queues, self.settings, self.counters):
            found += one() if self.is_here() else ()
        if not self.device.is_there():
            found = [self.found(WARNING, "device", "it has gone while it was looked at", "look again")]
        yield from found
