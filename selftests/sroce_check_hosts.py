# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""sroce_check_hosts.py FOLDER : hosts, devices and paths that are made up, and what sroce-check and sroce-top (in FOLDER) say.

Prints what program_verdicts() of lib.sh takes.
"""
import contextlib
import io
import ipaddress
import os
import socket
import sys
import tempfile
from unittest import mock

sys.path.insert(0, sys.argv[1])
# pylint: disable=wrong-import-position
from sroce_tools import device, firewall, growth, host, memlock, peer, rates, rdma, system, table  # noqa: E402
from sroce_tools.finding import FAULT, INFO, OK, WARNING  # noqa: E402
from sroce_tools.rules import Packet  # noqa: E402

growth.SECONDS = peer.IDLE = 0
SETTINGS = {path: 1 for path in rdma.SETTINGS}
HEALTHY = {"tx_trains": 9, "rdma_tx_packets": 10**6, "rdma_rx_packets": 10**6}


class Device(rdma.Device):
    """A device whose counters are said, one set for each time that they are read, the last again and again."""

    def __init__(self, *counters, netdev="lo", file="/dev/infiniband/uverbs0"):
        super().__init__("srt_x", netdev, "ACTIVE")
        self.said, self.name_of_file, self.there = list(counters) or [{}], file, True

    def is_there(self):
        return self.there

    def counters(self):
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]

    def setting(self, path):
        return SETTINGS.get(path)

    def file(self):
        return self.name_of_file

    def gids(self):
        return [rdma.Gid(0, ipaddress.ip_address("10.0.0.1"), 2, self.netdev)]


def levels(findings):
    """What was found, by check: levels."""
    return {one.check: one.level for one in findings}


# --- counters -----------------------------------------------------------------------------------------------------


def counted(before, now):
    """What is said of a device that has counted so much, and a second later so much."""
    return levels(device.Checks(Device({**HEALTHY, **before}, {**HEALTHY, **now})).counters())


def counters():
    """What has happened once is told, and what happens now is warned of."""
    forged, more = {"rx_icrc_encapsulated": 1}, {"rx_icrc_encapsulated": 2}
    yield "a device without a fault", counted({}, {}), {}
    yield "a packet that was forged long ago", counted(forged, forged), {"rx_icrc_encapsulated": INFO}
    yield "one that comes now", counted(forged, more), {"rx_icrc_encapsulated": WARNING}
    text = list(device.Checks(Device({**HEALTHY, **forged})).counters())[0].text
    yield "its share, and that there is none now", ("0.001 %" in text, "none in the last" in text), (True, True)
    named = Device({**HEALTHY, "rp_cnp_ignored": 1})
    named.port = "/sys/class/infiniband/x;reboot/ports/1"
    yield "a name that a shell would obey", list(device.Checks(named).counters())[0].advice, \
        "echo 2 >'/sys/class/infiniband/x;reboot/ports/1'/cc_params/rp_enable"
    lost = {"retrans_packets": 5000, "local_ack_timeout_err": 9}
    yield "packets that were lost long ago", counted(lost, lost), {"resent": INFO}
    yield "packets that are lost now", counted(
        {}, {"retrans_packets": 50, "rdma_tx_packets": 10**6 + 1000}), {"resent": WARNING}
    yield "few of very many now", counted({}, {"retrans_packets": 8, "rdma_tx_packets": 2 * 10**6}), {}
    yield "a busy device with a receive too late now and then", counted(
        {}, {"out_of_buffer": 8, "rdma_rx_packets": 2 * 10**6}), {}
    yield "one with many", counted({}, {"out_of_buffer": 80, "rdma_rx_packets": 10**6 + 100}), {"out_of_buffer": WARNING}
    yield "a device that was made anew meanwhile", counted({"rx_malformed_packets": 9}, {"rx_malformed_packets": 0}), {}
    yield "counters that cannot be read", levels(device.Checks(Device()).counters()), {"counters": INFO}
    for name, now, level in (("long ago", 7, INFO), ("now", 8, WARNING)):
        with mock.patch.object(host, "backlog", mock.Mock(side_effect=[{"packets": 9, "dropped": 7}, {"packets": 9, "dropped": now}])):
            yield f"processors that had no room, {name}", levels(host.check_backlog(growth.Growth(host.backlog))), {"backlog": level}
        checks = device.Checks(Device())
        checks.lost = growth.Growth(mock.Mock(side_effect=[{"rx_missed_errors": one, "rx_packets": 99, "rx_fifo_errors": 0, "rx_over_errors": 0}
                                                           for one in (7, now)]))
        yield f"rings that had no room, {name}", levels(checks.queues()).get("ring"), level


# --- the firewall -------------------------------------------------------------------------------------------------


def walls():
    """Which packets the rules are asked about, and how the answer is told."""
    packets = list(device.Checks(Device(HEALTHY)).packets())
    yield "the device's address is in its packets", packets, [
        Packet("ip", way, "lo", ipaddress.ip_address("10.0.0.1")) for way in (True, False)]
    both = [Packet("ip", True, "lo", ipaddress.ip_address(f"10.0.0.{i}")) for i in (1, 2)]
    yield "all addresses", device.names_of(both, both), "IPv4"
    yield "one of two", device.names_of(both[1:], both), "10.0.0.2"
    with mock.patch.object(firewall, "verdict_here", lambda packet: ("drop", "x") if packet.incoming else ("accept", None)), \
            mock.patch.object(firewall, "unread", lambda family: []), mock.patch.object(firewall, "beside_rules", lambda *_: []):
        yield "dropped on one way", [(one.level, one.text) for one in device.Checks(Device(HEALTHY)).walls()], [
            (FAULT, "the firewall drops RoCE packets into lo (IPv4; x)")]
    odd = {"nftables": [{"chain": {"family": "inet", "table": "t", "name": "c", "hook": "input"}},
                        {"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [{"match": 7}]}}]}
    with mock.patch.object(firewall, "ruleset_of_nft", lambda: odd), mock.patch.object(firewall, "saved_by", lambda program: ""), \
            mock.patch.object(firewall, "beside_rules", lambda *_: []), mock.patch.object(os, "geteuid", lambda: 0), \
            mock.patch.object(firewall, "netdevs_of_nft", lambda: {}):
        yield "rules that nobody understands", [(one.level, "not understood" in one.text) for one in device.Checks(Device(HEALTHY)).walls()], [
            (INFO, True)]
    with mock.patch.object(system, "program", lambda name: None), mock.patch.object(firewall, "tables_in_kernel", lambda: None):
        yield "no nft, and the kernel does not say", firewall.without_nft("ip", set()), [
            "nft is not installed: whether there are rules of nftables is not known"]
    with mock.patch.object(firewall, "tables_in_kernel", lambda: [("ip", "filter"), ("ip6", "x")]):
        yield "tables that iptables has shown", firewall.without_nft("ip", {"filter"}), []
    links = {"br0.7": ["lower_br0"], "br0": ["lower_eth0.5", "lower_veth1"], "eth0.5": ["lower_eth0"], "bond0": ["lower_eth1"]}
    with mock.patch.object(system, "entries", lambda path: links.get(os.path.basename(path), [])), \
            mock.patch.object(os.path, "isdir", lambda path: path.endswith("/br0/bridge")):
        yield "between a VLAN of a bridge and a port", firewall.below("br0.7", "eth0"), ("br0", "eth0.5", "eth0")
        yield "below a device on a bridge", firewall.below("br0", "br0"), ()
        yield "below a device on a bond", firewall.below("bond0", "bond0"), ("eth1",)


# --- netdevs above the device's ---------------------------------------------------------------------------------------


class Above(Device):
    """A device that has, beside its own, GIDs of other netdevs, by name."""

    def __init__(self, *netdevs):
        super().__init__(HEALTHY)
        self.netdevs = netdevs

    def gids(self):
        return [rdma.Gid(i, ipaddress.ip_address(f"10.0.{i}.1"), 2, netdev) for i, netdev in enumerate(self.netdevs)]


@contextlib.contextmanager
def netdevs(**numbers):
    """There are these netdevs: MTU and flags, by name."""
    def read_number(path, default=None):
        name, what = path.split("/")[-2:]
        return numbers[name][("mtu", "flags").index(what)] if name in numbers and what in ("mtu", "flags") else default

    with mock.patch.object(system, "read_number", read_number), \
            mock.patch.object(os.path, "exists", lambda path: os.path.basename(path) in numbers):
        yield


def above():
    """VLANs have MTUs and states of their own."""
    for name, mtu, expected in (("as large", 9000, {"mtu": OK}), ("smaller, and no matter", 4500, {"mtu": OK}),
                                ("smaller", 1500, {"mtu": WARNING}), ("too small", 68, {"mtu": WARNING})):
        with netdevs(lo=(9000, 1), v7=(mtu, 1)):
            found = list(device.Checks(Above("lo", "v7")).mtu())
            yield f"a VLAN's MTU: {name}", {one.check: one.level for one in found}, expected
    yield "and of which netdev it is", "v7 has MTU 68, too little" in found[1].text, True
    vrf, bridge = ([{"linkinfo": {"info_slave_kind": kind}}] for kind in ("vrf", "bridge"))
    for name, link, on, expected in (("a port of a bridge", bridge, "lo", WARNING), ("one with the bridge's addresses", bridge, "br0", INFO),
                                     ("one that nobody can tell of", None, "lo", WARNING), ("a netdev in a VRF", vrf, "lo", None)):
        firewall.link_of.cache_clear()
        with netdevs(lo=(9000, 1), br0=(9000, 1), master=(9000, 1)), mock.patch.object(system, "run_json", lambda *_, link=link: link), \
                mock.patch.object(os.path, "realpath", lambda path: "/x/br0"):
            yield name, levels(device.Checks(Above(on)).state()).get("master"), expected
    firewall.link_of.cache_clear()
    for name, there, level, usable in (("up", {"v7": (9000, 1)}, OK, "-x 0"), ("down", {"v7": (9000, 0)}, WARNING, "-x 1"),
                                       ("in another network namespace", {}, INFO, "-x 1")):
        with netdevs(lo=(9000, 1), **there):
            found = list(device.Checks(Above("v7", "lo")).addresses())
            yield f"a GID of a VLAN that is {name}", found[0].level, level
            yield f"and the one to use: {name}", usable in found[-1].text, True


# --- memory that may be registered ------------------------------------------------------------------------------------


def limits():
    """Whose limit is which."""
    told = memlock.lines_of_pam(["# * - memlock 1\n* soft memlock 64\n* hard memlock unlimited # x\n* - nofile 9\n",
                                 "@rdma - memlock unlimited\n* soft memlock 128\nbob soft memlock much\n"])
    yield "lines of pam_limits", told, {"*": (128 * 1024, memlock.NONE), "@rdma": (memlock.NONE, memlock.NONE)}
    yield "the last line counts", memlock.of_users(told, (5, 5)), 128 * 1024
    yield "no line: as the service that has them log in", memlock.of_users({}, (8 << 20, 8 << 20)), 8 << 20
    yield "no more than the hard limit", memlock.of_users({"*": (None, 1024)}, (8 << 20, 8 << 20)), 1024
    soft = memlock.users({"*": (memlock.NONE, None)}, (8 << 20, 8 << 20), "systemd")
    yield "a soft limit alone goes no further than the hard one", (soft.level, "8 MiB" in soft.text, "systemd" in soft.text), \
        (WARNING, True, True)
    yield "nobody says", memlock.users({}, (None, None), "").level, INFO
    little = memlock.users({}, (8 << 20, 8 << 20), "systemd")
    yield "little for users, and why", (little.level, "8 MiB" in little.text, "systemd" in little.text, "limits.d" in little.advice), \
        (WARNING, True, True, True)
    yield "little, and a group that has more", memlock.users({"@rdma": (memlock.NONE,) * 2}, (8 << 20, 8 << 20), "x").level, INFO
    yield "without limit", memlock.users({"*": (memlock.NONE,) * 2}, (8 << 20, 8 << 20), "x").level, OK
    for said, limit in (("DefaultLimitMEMLOCK=8388608\nDefaultLimitMEMLOCKSoft=65536\n", 65536), ("DefaultLimitMEMLOCKSoft=infinity\n", memlock.NONE),
                        ("DefaultLimitMEMLOCKSoft=18446744073709551615\n", memlock.NONE), (None, None)):
        with mock.patch.object(system, "run", lambda *_, said=said: said), mock.patch.object(os.path, "isdir", lambda _: True):
            yield f"services, where systemd says {said!r}", memlock.of_services()[0][0], limit
    status = "CapEff:\t{:016x}"
    for name, capabilities, users, expected in (("root", 1 << 14, "0 0 4294967295", True), ("a user", 0, "0 0 4294967295", False),
                                                ("root of a container with users of its own", 1 << 14, "0 100000 65536", False)):
        said = {"/proc/self/status": status.format(capabilities), "/proc/self/uid_map": users}
        with mock.patch.object(system, "read", lambda path, default=None, said=said: said.get(path, default)):
            yield f"has no limit: {name}", memlock.is_privileged(), expected
            yield f"and is named: {name}", "CAP_IPC_LOCK" in memlock.own().text, expected


# --- containers -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def a_container(devices, programs=(), known=(), modules=False, loaded=True):
    """A host with these devices and programs, libibverbs that knows some devices, and a folder of modules or none."""
    def isdir(path):
        return loaded if path == "/sys/module/sroce" else modules if path.startswith("/lib/modules/") else False

    with contextlib.ExitStack() as changes:
        for where, name, what in (
                (rdma, "devices", lambda: devices), (rdma, "of_libibverbs", lambda: known and list(known)), (os.path, "isdir", isdir),
                (system, "program", lambda name: f"/usr/bin/{name}" if name in programs else None),
                (system, "run", lambda *_, **__: None), (host, "another_is_installed", lambda file: None),
                (host, "providers", lambda: [("/usr/lib/x/libibverbs", {"sroce": ["34"], "rxe": ["34"]})])):
            changes.enter_context(mock.patch.object(where, name, what))
        yield


def containers():
    """What cannot be seen is no fault."""
    gone = Device(HEALTHY, file="/dev/infiniband/not_there")
    with a_container([gone], known=[]):
        yield "no device file: nothing is said against the provider", levels(host.check_provider()).get("provider") in (OK, WARNING), True
        found = [one for one in host.check_files() if one.check == "files"]
        yield "but that the file is not there", (found[0].level, "not_there" in found[0].text, "container" in found[0].advice), \
            (WARNING, True, True)
    with tempfile.NamedTemporaryFile() as file, a_container([Device(HEALTHY, file=file.name)], known=["other"]):
        yield "a device file, and no provider that takes it", levels(host.check_provider()), {"provider": FAULT}
    with a_container([gone]):
        yield "no kmod: the module is loaded", levels(host.check_module()), {"module": OK}
    with a_container([gone], programs=["modinfo"]):
        yield "kmod, and no folder of modules: the module is loaded", levels(host.check_module()), {"module": OK}
    with a_container([gone], modules=True):
        yield "a folder of modules, and no kmod: the module is loaded", levels(host.check_module()), {"module": OK}
    with a_container([], modules=True, loaded=False):
        yield "a folder of modules, and no kmod: it is not loaded", levels(host.check_module()), {"module": WARNING}
    with a_container([gone], programs=["modinfo"], modules=True):
        yield "a module that is loaded and nowhere else", levels(host.check_module()), {"module": WARNING}
    with a_container([], loaded=False):
        yield "no kmod, and the module is not loaded", levels(host.check_module()), {"module": WARNING}
    with a_container([], programs=["modinfo"], loaded=False):
        yield "kmod, no folder of modules, and it is not loaded", levels(host.check_module()), {"module": WARNING}
    with a_container([], programs=["modinfo"], modules=True, loaded=False):
        yield "there is no module", levels(host.check_module()), {"module": FAULT}
    with a_container([], programs=["modinfo"], modules=True, loaded=False), mock.patch.object(host, "module_file", lambda: "/x.ko"), \
            mock.patch.object(host, "only_signed", lambda: True):
        yield "one without a signature, and modinfo that says nothing", levels(host.check_module()), {"module": FAULT}
    with a_container([gone]):
        found = [*host.check(), *device.Checks(gone).check()]
        yield "no programs at all: no fault", [one for one in found if one.level == FAULT], []
        yield "and what is not looked at is said", {one.check for one in found} >= {"rdma", "ethtool", "firewall"}, True
    blind = Device({})
    yield "a device whose counters cannot be read is known by its settings", blind.is_sroce(), True
    with mock.patch.dict(SETTINGS, {rdma.SETTINGS[0]: None}):
        yield "one without them is not", blind.is_sroce(), False


# --- what else is easily taken for something else -----------------------------------------------------------------------


def others():
    """A port that is down, and names in the configuration."""
    down = Device(HEALTHY)
    down.state = "DOWN"
    for carrier, expected in ((0, "no carrier"), (1, "though lo is up and has a carrier")):
        with mock.patch.object(system, "read_number", lambda path, default=None, carrier=carrier: {"flags": 1, "carrier": carrier}.get(
                os.path.basename(path), default)):
            yield f"a port that is down, carrier {carrier}", expected in list(device.Checks(down).state())[0].text, True
    gone = Device(HEALTHY, {})
    gone.there = False
    with mock.patch.object(system, "run", lambda *_, **__: None):
        yield "a device that goes while it is looked at", [one.text for one in device.Checks(gone).check()], ["it has gone while it was looked at"]
    for text, expected in (("lo x\n", "fault"), ("lo#x\n", "ok"), ("# lo\n #lo\n", None), ("lo name # x\n", "fault")):
        with mock.patch.object(system, "read", lambda path, default=None, text=text: text), mock.patch.object(rdma, "devices", lambda: []):
            yield f"the configuration {text!r}", levels(host.check_configuration()).get("configuration"), expected


# --- what a netdev does -------------------------------------------------------------------------------------------------

# What ethtool and dcb print, as far as it matters
FEATURES = "Features for lo:\nrx-checksumming: {}\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\ngeneric-receive-offload: {}\n"
HASH = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n{}\n"
PORTS = "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n"
RINGS = "Ring parameters for lo:\nPre-set maximums:\nRX:\t\t{}\nTX:\t\t512\nCurrent hardware settings:\nRX:\t\t{}\nTX:\t\t512\n"
PAUSES = "prio-pfc 0:off 1:off 2:off 3:{0} 4:off 5:{0} 6:off 7:off\n"


@contextlib.contextmanager
def a_card(said, queues=8, hardware=True):
    """A netdev with so many receive queues; said: what programs print, by their command line."""
    real, names = os.path.exists, [f"{way}-{i}" for way in ("rx", "tx") for i in range(queues)]
    with mock.patch.object(system, "program", lambda name: f"/usr/sbin/{name}"), \
            mock.patch.object(system, "run", lambda *command, **_: said.get(" ".join(command))), \
            mock.patch.object(system, "entries", lambda path: names if path.endswith("/lo/queues") else []), \
            mock.patch.object(os.path, "exists", lambda path: hardware if path.endswith("/lo/device") else real(path)):
        yield device.Checks(Device(HEALTHY))


def offloads():
    """What is off and costs processor time."""
    for name, features, hardware, expected in (
            ("that does both", ("on", "on"), True, {}), ("without checksums", ("off", "on"), True, {"checksum": INFO}),
            ("that cannot do checksums", ("off [fixed]", "on"), True, {"checksum": INFO}),
            ("without GRO", ("on", "off"), True, {"gro": WARNING}), ("without GRO, that is no hardware", ("on", "off"), False, {"gro": INFO})):
        with a_card({"ethtool -k lo": FEATURES.format(*features)}, hardware=hardware) as checks:
            found = list(checks.offloads())
            yield f"a card {name}", levels(found), expected
            yield f"and what helps: a card {name}", [one.advice for one in found if one.check == "gro"], \
                ["ethtool -K lo gro on"] * ("gro" in expected)
    with a_card({}) as checks:
        yield "a netdev of whose features ethtool knows nothing", levels(checks.offloads()), {}


def spreading():
    """Queues get packets by their ports, or one queue gets them all; rings have room."""
    ask = "ethtool -n lo rx-flow-hash udp4"
    for name, answer, queues, expected in (("by addresses and ports", HASH.format(PORTS), 8, {}), ("by addresses", HASH.format(""), 8, {"rss": WARNING}),
                                           ("by addresses, into one queue", HASH.format(""), 1, {}), ("nobody knows how", None, 8, {})):
        with a_card({ask: answer, "ethtool -n lo": answer}, queues) as checks:
            found = list(checks.queues())
            yield f"a card that spreads {name}", levels(found), expected
            yield f"and what helps: one that spreads {name}", [(one.advice, "its 8 queues" in one.text) for one in found], \
                [("ethtool -N lo rx-flow-hash udp4 sdfn", True)] * len(expected)
    for name, most, now, advice in (("a short ring", 4096, 256, "ethtool -G lo rx 4096"), ("the longest ring", 4096, 4096, None)):
        with a_card({"ethtool -g lo": RINGS.format(most, now)}, 1) as checks:
            checks.lost = growth.Growth(lambda: {"rx_missed_errors": 7, "rx_packets": 99, "rx_fifo_errors": 0, "rx_over_errors": 0})
            yield f"{name} that had no room", [(one.check, one.advice) for one in checks.queues()], [("ring", advice)]


def congestion():
    """What it does about congestion and loss, and for which priorities it pauses."""
    ask = "dcb pfc show dev lo prio-pfc"
    for name, answer, expected in (("two priorities", PAUSES.format("on"), ["pauses for: 3, 5 (PFC priorities)"]),
                                   ("none", PAUSES.format("off"), []), ("nobody knows which", None, [])):
        with a_card({ask: answer}) as checks:
            yield f"pauses for {name}", [one.text for one in checks.settings() if one.check == "pfc"], expected
    for reaction, tells, expected in ((0, 1, "(ECN): off; tells senders of marks: on"), (1, 0, "(ECN): on; tells senders of marks: off"),
                                      (2, 1, "(ECN): where the peer tells of marks; tells senders of marks: on"),
                                      (7, None, "(ECN): 7; tells senders of marks: ?")):
        with a_card({}) as checks, mock.patch.dict(SETTINGS, {"cc_params/rp_enable": reaction, "cc_params/np_enable": tells}):
            found = [(one.level, one.text) for one in checks.settings() if one.check == "ecn"]
            yield f"congestion: {reaction}, {tells}", [(level, text.endswith(expected)) for level, text in found], [(INFO, True)]
    for repeats, expected in ((0, ["off"]), (1, ["on"]), (None, [])):
        with a_card({}) as checks, mock.patch.dict(SETTINGS, {"roce_accl/selective_repeat_en": repeats}):
            yield f"selective repeat: {repeats}", [one.text.rsplit(": ", 1)[1] for one in checks.settings() if one.check == "loss"], expected
    with a_card({}) as checks, mock.patch.dict(SETTINGS, {path: None for path in SETTINGS}):
        yield "a device without settings", list(checks.settings()), []
    with a_card({"ethtool -k lo": FEATURES.format("off", "off"), "ethtool -n lo rx-flow-hash udp4": HASH.format(""), ask: PAUSES.format("on")}) as checks:
        yield "all of it is looked at", {"gro", "checksum", "rss", "ecn", "loss", "pfc"} - set(levels(checks.check())), set()
    odd = device.Checks(Device(HEALTHY, netdev="-x"))
    with mock.patch.object(system, "run", mock.Mock(return_value=PAUSES.format("on"))) as run:
        yield "a name that dcb would take for an option", [one for one in odd.settings() if one.check == "pfc"], []
        yield "and ethtool, too", (levels(odd.offloads()).get("gro"), odd.ethtool("-k"), run.called), (None, None, False)


def beside():
    """rdma_rxe has the port of a network namespace, or of another one."""
    ours, rxe, elsewhere = Device(HEALTHY), Device({"rcvd_pkts": 5}), Device({"rcvd_pkts": 5})
    rxe.name, elsewhere.netdev = "rxe7", None
    for name, devices, expected in (("beside it", [ours, rxe], [(WARNING, True)]), ("alone", [rxe], [(WARNING, True)]),
                                    ("not there", [ours], []), ("in another network namespace", [ours, elsewhere], [])):
        with mock.patch.object(rdma, "devices", lambda devices=devices: devices):
            yield f"rdma_rxe {name}", [(one.level, "(rxe7)" in one.text) for one in host.check_rxe()], expected
    with a_container([rxe]):
        yield "and it is looked for", levels(host.check()).get("rxe"), WARNING


# --- signatures ---------------------------------------------------------------------------------------------------------


def signatures():
    """Secure Boot alone does not say that the kernel takes only signed modules."""
    for name, enforce, lockdown, expected in (
            ("lockdown", "N", "none [integrity] confidentiality", True), ("no lockdown", "N", "[none] integrity confidentiality", False),
            ("enforced", "Y", "[none] integrity confidentiality", True), ("nobody says, with Secure Boot", None, None, True)):
        said = {"/sys/module/module/parameters/sig_enforce": enforce, "/sys/kernel/security/lockdown": lockdown}
        with mock.patch.object(system, "read", lambda path, default=None, said=said: said.get(path)), \
                mock.patch.object(host, "secure_boot", lambda: True):
            yield f"only signed modules: {name}", host.only_signed(), expected


# --- a path ---------------------------------------------------------------------------------------------------------------


def paths():
    """Why a test failed, where others are at work on the devices."""
    path = peer.Path.__new__(peer.Path)
    path.here, path.there, path.device, path.netdev = {"address": "a", "mtu": 9000}, {"address": "b", "mtu": 9000}, Device(), "v7"
    busy, idle = {"rdma_tx_packets", "rdma_rx_packets"}, set()
    rose = [{"tx_trains": 0, "rdma_tx_packets": 5, "rdma_rx_packets": number} for number in (5, 500)]
    silent = [{"tx_trains": 0, "rdma_tx_packets": 5}, {"tx_trains": 0, "rdma_rx_packets": 5}]
    for name, grown, large, others, expected in (
            ("nothing comes back", silent, False, [idle, idle], "its answers do not come to a"),
            ("nothing comes back, and others send", silent, False, [{"rdma_tx_packets"}, busy], "its answers do not come to a"),
            ("both ways", rose, False, [idle, idle], "both ways"),
            ("both ways, or others", rose, False, [busy, busy], "others are at work"),
            ("slowly", rose, True, [idle, idle], "too slowly"),
            ("a device of another driver here", [{"rcvd_pkts": 5}, rose[1]], False, [idle, idle], "counters at a"),
            ("counters that cannot be read", [{}, {}], False, [idle, idle], "counters at a and b"),
            ("a wrong ICRC", [{**rose[0], "rx_icrc_encapsulated": 1}, rose[1]], False, [idle, idle], "wrong ICRC"),
            ("a wrong ICRC of somebody else's", [{**rose[0], "rx_icrc_encapsulated": 1}, rose[1]], False,
             [{"rx_icrc_encapsulated", *busy}, busy], "others are at work")):
        yield f"why: {name}", expected in path.why(grown, large, others)[0], True
    yield "why: others, and where to look", "tcpdump -ni v7 udp" in path.why(rose, False, [busy, busy])[1], True
    connection = mock.Mock(getsockname=lambda: ("10.0.1.1", 1))
    with mock.patch.object(rdma, "devices", lambda: [Above("lo", "v7")]), netdevs(lo=(9000, 1), v7=(1500, 1)):
        foreign = Above("lo")
        foreign.netdev, foreign.netdevs = None, ("lo", "v7")
        with mock.patch.object(rdma, "devices", lambda: [foreign, Above("v8", "v7")]):
            yield "the same address in another network namespace", peer.place_of("10.0.1.1")[0] is foreign, False
        yield "the MTU is that of the address's netdev", peer.description(connection)["mtu"], 1500
    with mock.patch.object(path, "pings", lambda size: True, create=True):
        yield "why: slowly, or others", "large ones do not" in path.why(rose, True, [busy, busy])[0], True
    seen = iter([({"a": 1, "b": 1}, {}), ({"a": 1, "b": 2}, {"c": 1})])
    with mock.patch.object(path, "counted", lambda: next(seen), create=True):
        yield "what others do", path.others(), [{"b"}, {"c"}]


class Interrupted(Exception):
    """What a signal may raise anywhere."""


def listeners():
    """Nothing that a peer does, or a signal, leaves a program behind, and no number that it says is too large for anything."""
    for name, where in (("while its program starts", "listens"), ("while it is at work", "wait")):
        process = mock.Mock(poll=lambda: None)
        with mock.patch.object(peer, "ping", lambda *_, process=process: process), mock.patch.object(peer, "listens", lambda _: True), \
                mock.patch.object(peer, where, mock.Mock(side_effect=Interrupted)), contextlib.suppress(Interrupted):
            peer.take(mock.Mock(), {"address": "a"}, 1, {"size": 1, "number": 1})
        yield f"a listener that is interrupted {name}", process.kill.called, True
    process = mock.Mock(communicate=mock.Mock(side_effect=Interrupted))
    with contextlib.suppress(Interrupted):
        peer.wait(process)
    ours, theirs = socket.socketpair()
    with mock.patch.object(peer, "LONGEST", 1), mock.patch.object(peer.socket, "create_connection", lambda *_, **__: ours), \
            mock.patch.object(peer, "plain", lambda _: "a"), theirs:
        yield "another end that takes its time", ["too long" in one.text for one in peer.check("a", 1)], [True]
    yield "whoever asks and is interrupted", process.kill.called, True
    yield "counters that are none", peer.numbers({"a": 1 << 64, "b": -1, "c": 1.5, "d": "1", "e": 7}), {"e": 7}
    # Who has gone before it came, and the end of the test
    server = mock.MagicMock(accept=mock.Mock(side_effect=[ConnectionAbortedError, Interrupted]))
    server.__enter__.return_value = server
    seen = None
    with mock.patch.object(peer.socket, "create_server", lambda *_, **__: server), mock.patch.object(peer.signal, "signal"), \
            contextlib.redirect_stdout(io.StringIO()):
        try:
            peer.listen(1, False)
        except (Interrupted, OSError) as error:
            seen = type(error)
    yield "a peer that goes before it comes", seen, Interrupted


# --- sroce-top -------------------------------------------------------------------------------------------------------------


class Look(rates.Look):
    """What there is at one time, as it is said."""

    def __init__(self, when, *queue_pairs, asked=True):  # pylint: disable=super-init-not-called
        self.time, self.devices, self.wanted = when, {"srt_x": (Device(), HEALTHY)}, ()
        self.queue_pairs = {("srt_x", one["lqpn"]): one for one in queue_pairs} if asked else None


def queue_pair(done, **more):
    """What rdma tells of one."""
    return {"lqpn": 17, "type": "RC", "state": "RTS", "pid": 5, "comm": "a", "rqpn": 9, "drv_sq_done": done, "drv_sq_fetched": done,
            "drv_sq_next_psn": 100 + done, "drv_rq_epsn": 7, **more}


def top():
    """Rates of queue pairs, also of those that have the number of one that is gone."""
    def of(then, now):
        row = rates.of_queue_pairs(Look(1, then), Look(2, now))[0]
        return row["messages"], row["tx_psns"]

    yield "a queue pair at work", of(queue_pair(1000), queue_pair(1500)), (500, 500)
    yield "a count that comes round", of(queue_pair(2**32 - 100), queue_pair(2**32 + 400, drv_sq_done=400, drv_sq_fetched=400))[0], 500
    yield "another one of the same number, by its count", of(queue_pair(1000), queue_pair(10)), (0, 0)
    yield "another one, by what it has received", of(queue_pair(10, drv_rq_taken=9), queue_pair(20, drv_rq_taken=1)), (0, 0)
    yield "another one, of another process", of(queue_pair(1000), queue_pair(1500, pid=6)), (0, 0)
    yield "another one, to another peer", of(queue_pair(1000), queue_pair(1500, rqpn=8)), (0, 0)
    looks, names = [Look(1), Look(3)], dict.fromkeys(name for column in rates.DEVICE_COLUMNS.values() for name in column)
    looks[0].devices = {"srt_x": (Device(), dict.fromkeys(names, 7))}
    looks[1].devices = {"srt_x": (Device(), {name: 7 + 2 * (10 + at) for at, name in enumerate(names)})}
    each = dict(zip(*[line.split() for line in list(table.lines(*looks, 0))[1:3]]))
    for title, columns in (("TX-pkt/s", "rdma_tx_packets"), ("RX-pkt/s", "rdma_rx_packets"), ("RESENT", "retrans_packets"),
                           ("TIMEOUT", "local_ack_timeout_err"), ("GAPS", "packet_seq_err implied_nak_seq_err"),
                           ("RNR", "out_of_buffer rnr_nak_retry_err"), ("MARKED", "np_ecn_marked_roce_packets"),
                           ("CNP", "np_cnp_sent rp_cnp_handled rp_cnp_ignored"),
                           ("DROP", "tx_dropped_packets rx_icrc_encapsulated rx_malformed_packets rx_discarded_packets")):
        yield f"the column {title}", each[title], str(sum(10 + list(names).index(name) for name in columns.split()))
    for asked, expected in ((False, "-"), (True, "1")):
        looks = [Look(when, queue_pair(1), asked=asked) for when in (1, 2)]
        rows = list(table.lines(*looks, 0))
        yield f"the number of queue pairs, {'asked' if asked else 'not asked'} for", rows[2].split()[-1], expected
        yield f"and there are no rows, {'asked' if asked else 'not asked'} for", len(rows), 3
    for wanted, there, expected in ((("x\n",), True, "there is no sroce device x?"), ((), False, "there is no sroce device in this network namespace")):
        looks = [Look(when) for when in (1, 2)]
        looks[1].wanted, looks[1].devices = wanted, looks[1].devices if there else {}
        yield f"devices that are not there: {wanted}", list(table.lines(*looks, 0))[-1], expected


def main():
    """All cases."""
    wrong = 0
    for cases in (counters, walls, above, limits, containers, others, offloads, spreading, congestion, beside, signatures,
                  paths, listeners, top):
        for name, answer, expected in cases():
            wrong += answer != expected
            print(f"ok: {name}" if answer == expected else f"WRONG: {name}\n  {answer}, not {expected}", flush=True)
    print(f"{wrong} wrong")


main()
