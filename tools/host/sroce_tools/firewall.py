# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the firewall of this network namespace does with RoCE packets: its rules, from the programs that show them."""
import functools
import os
import socket
import struct

from . import system
from .iptables import iptables_bases, tables_in_nftables
from .nftables import filters_bridges, netdevs_of_chains, nft_bases
from .rules import verdict

NET = "/sys/class/net"
# Of linux/netfilter/nfnetlink.h and nf_tables.h
NETLINK_NETFILTER, NFTABLES_GETTABLE, REQUEST_DUMP = 12, 10 << 8 | 1, 0x301
TABLE_NAME, ERROR, DONE = 1, 2, 3
FAMILIES = {1: "inet", 2: "ip", 5: "netdev", 7: "bridge", 10: "ip6"}


# --- what the programs say, once; hundreds of thousands of rules take them minutes -------------------------


@functools.lru_cache(maxsize=None)
def saved_by(program):
    """What iptables-save or one of its kind has printed, or None."""
    return system.run(program, timeout=300)


@functools.lru_cache(maxsize=None)
def ruleset_of_nft():
    """What nft has printed, as JSON."""
    return system.run_json("nft", "-j", "list", "ruleset", timeout=300)


@functools.lru_cache(maxsize=None)
def netdevs_of_nft():
    """The netdevs of chains, by (family, table, chain)."""
    return netdevs_of_chains(system.run("nft", "list", "chains", timeout=300) or "")


# --- where there is no program ---------------------------------------------------------------------------------


def names_of_tables(answer):
    """Family and name of the tables in an answer of nftables; None if it is not its last."""
    found, at = [], 0
    while at + 16 <= len(answer):
        length, kind = struct.unpack_from("=IH", answer, at)
        if kind == DONE or length < 16:
            return found, True
        if kind == ERROR:
            raise OSError("the kernel does not say")
        attribute, end = at + 20, at + length
        while attribute + 4 <= end:
            size, what = struct.unpack_from("=HH", answer, attribute)
            if what & 0x3fff == TABLE_NAME:
                found.append((FAMILIES.get(answer[at + 16], "other"), answer[attribute + 4:attribute + size].rstrip(b"\0").decode(errors="replace")))
            attribute += max(size + 3 & ~3, 4)
        at += length + 3 & ~3
    return found, False


@functools.lru_cache(maxsize=None)
def tables_in_kernel():
    """Family and name of the tables of nftables that there are, as the kernel itself says; None if it does not."""
    if "nft_do_chain" not in system.read("/proc/kallsyms", ""):
        # asking would load it
        return []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as kernel:
            kernel.settimeout(10)
            kernel.send(struct.pack("=IHHIIBBH", 20, NFTABLES_GETTABLE, REQUEST_DUMP, 1, 0, 0, 0, 0))
            found, over = [], False
            while not over:
                more, over = names_of_tables(kernel.recv(1 << 16))
                found += more
            return found
    except (OSError, struct.error):
        return None


def without_nft(family, own):
    """What is not known where nft is not there, or fails, as words; own: tables that iptables has shown."""
    tables = tables_in_kernel()
    what = "nft fails" if system.program("nft") else "nft is not installed"
    if tables is None:
        return [f"{what}: whether there are rules of nftables is not known"]
    hidden = [f"{one} {name}" for one, name in tables if one in ("inet", "netdev", "bridge", family) and not (one == family and name in own)]
    return [f"{what}: what is in {', '.join(sorted(hidden)[:3])} of nftables is not known"] if hidden else []


# --- netdevs ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def link_of(netdev):
    """What ip(8) tells of a netdev; nothing of one whose name it takes for an option, or where it is not there."""
    links = None if netdev.startswith("-") else system.run_json("ip", "-j", "-d", "link", "show", "dev", netdev)
    return links[0] if links else {}


def is_in_vrf(netdev):
    """Is its master a VRF?"""
    return link_of(netdev).get("linkinfo", {}).get("info_slave_kind") == "vrf"


# --- what else may take packets ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def beside_rules(netdev, incoming):
    """What sees the packets of a netdev outside of the rules, as words."""
    found, side = [], "ingress" if incoming else "egress"
    if netdev.startswith("-"):
        return found
    if incoming and link_of(netdev).get("xdp"):
        found.append(f"an XDP program sees the packets of {netdev} first")
    if (system.run("tc", "filter", "show", "dev", netdev, side) or "").strip():
        found.append(f"filters of tc see the packets of {netdev} ({side})")
    return found


# --- all of it -------------------------------------------------------------------------------------------------------


def unread(family):
    """What could not be read, each as words."""
    if os.geteuid() != 0:
        return ["only root can see what the firewall does"]
    found, own = [], set()
    save = "iptables-save" if family == "ip" else "ip6tables-save"
    legacy = save.replace("-save", "-legacy-save")
    for program in (save, legacy):
        if saved_by(program) is None and system.program(program):
            found.append(f"{program} fails")
        own |= tables_in_nftables(saved_by(program) or "")
    if not system.program(save) and not system.program(legacy) and system.read(f"/proc/net/{family}_tables_names"):
        found.append(f"there are rules of iptables, and no {save} to read them")
    ruleset = ruleset_of_nft()
    if ruleset is None:
        found += without_nft(family, own)
    elif filters_bridges(ruleset):
        found.append("rules of bridges are not followed")
    return found


def bases_here(packet):
    """All base chains of this network namespace that a packet passes."""
    bases, own = [], set()
    save = "iptables-save" if packet.family == "ip" else "ip6tables-save"
    for program in (save, save.replace("-save", "-legacy-save")):
        saved = saved_by(program) or ""
        own |= tables_in_nftables(saved)
        bases += [base for base in iptables_bases(saved, packet, program[:-5]) if base not in bases]
    ruleset = ruleset_of_nft()
    return bases + (nft_bases(ruleset, packet, own, netdevs_of_nft()) if ruleset else [])


def verdict_here(packet):
    """What becomes of a packet, as judge() of rules.py says it; None if rules are printed otherwise than ever before."""
    try:
        return verdict(bases_here, packet) if os.geteuid() == 0 else ("accept", None)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        # All else that there is to tell is told
        return None


def below(netdev, device, under=False):
    """The netdevs that a packet for a netdev passes, too: those between it and the device's, and what is under that."""
    found, under = [], under or netdev == device
    for one in [name[6:] for name in system.entries(f"{NET}/{netdev}") if name.startswith("lower_")]:
        deeper = below(one, device, under)
        # a bridge has more ports than that of the device
        if device in (one, *deeper) or (under and not os.path.isdir(f"{NET}/{netdev}/bridge")):
            found += [one, *deeper]
    return tuple(dict.fromkeys(found))
