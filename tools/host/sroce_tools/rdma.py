# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The RDMA devices of this network namespace: what sysfs, rdma(8) and libibverbs say of them."""
import ctypes
import ipaddress
import os
from collections import namedtuple

from . import system

SYSFS = "/sys/class/infiniband"
VERBS = "/sys/class/infiniband_verbs"
SETTINGS = ("roce_accl/selective_repeat_en", "cc_params/rp_enable", "cc_params/np_enable")
# address: of the ipaddress module; version: 1 or 2, of RoCE
Gid = namedtuple("Gid", "index address version netdev")


class Device:
    """One port of an RDMA device."""

    def __init__(self, name, netdev, state):
        self.name, self.netdev, self.state = name, netdev, state
        self.port = f"{SYSFS}/{name}/ports/1"

    def is_there(self):
        """Is there still a device of this name?"""
        return os.path.exists(f"{SYSFS}/{self.name}")

    def is_sroce(self):
        """No other driver counts trains. (Where counters cannot be read: nor has any other all of these settings.)"""
        counted = self.counters()
        return "tx_trains" in counted or (not counted and all(self.setting(path) is not None for path in SETTINGS))

    def is_rxe(self):
        """Nor has any other this name for what it receives."""
        return "rcvd_pkts" in self.counters()

    def counters(self):
        """What the driver counts, by name. (Other network namespaces than the first do not have them in sysfs.)"""
        counted = system.run_json("rdma", "-j", "statistic", "show", "link", f"{self.name}/1")
        if counted:
            return {name: value for name, value in counted[0].items() if name not in ("ifname", "port")}
        folder = f"{self.port}/hw_counters"
        return {name: system.read_number(f"{folder}/{name}", 0) for name in system.entries(folder) if name != "lifespan"}

    def file(self):
        """The file through which applications use it; None if the kernel tells of none."""
        names = [name for name in system.entries(VERBS) if system.read(f"{VERBS}/{name}/ibdev") == self.name]
        return f"/dev/infiniband/{names[0]}" if names else None

    def setting(self, path):
        """A number among the port's settings, as "roce_accl/selective_repeat_en"; None if there is no such setting."""
        return system.read_number(f"{self.port}/{path}")

    def gids(self):
        """All GIDs, in the order of their indices."""
        found = []
        for index in sorted(int(name) for name in system.entries(f"{self.port}/gids")):
            kind = system.read(f"{self.port}/gid_attrs/types/{index}", "")
            if not kind:
                continue
            address = ipaddress.IPv6Address(system.read(f"{self.port}/gids/{index}", "::"))
            found.append(Gid(index, address.ipv4_mapped or address, 2 if "v2" in kind else 1,
                             system.read(f"{self.port}/gid_attrs/ndevs/{index}")))
        return found


def devices():
    """All devices that this network namespace sees."""
    links = system.run_json("rdma", "-j", "link", "show")
    if links is None:
        return [Device(name, system.read(f"{SYSFS}/{name}/ports/1/gid_attrs/ndevs/0"),
                       (system.read(f"{SYSFS}/{name}/ports/1/state", "").split(": ") + [""])[1])
                for name in system.entries(SYSFS)]
    return [Device(link["ifname"], link.get("netdev"), link.get("state", "")) for link in links
            if os.path.exists(f"{SYSFS}/{link['ifname']}")]


def of_libibverbs():
    """The names of the devices for which libibverbs has a provider; None if there is no libibverbs."""
    try:
        verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    except OSError:
        return None
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    verbs.ibv_free_device_list.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    number = ctypes.c_int(0)
    devices_found = verbs.ibv_get_device_list(ctypes.byref(number))
    if not devices_found:
        return []
    names = [verbs.ibv_get_device_name(devices_found[i]).decode(errors="replace") for i in range(number.value)]
    verbs.ibv_free_device_list(devices_found)
    return names
