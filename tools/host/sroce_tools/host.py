# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Checks of what all devices of a host need: module, provider, device files, limits."""
import glob
import gzip
import lzma
import os
import platform
import resource
import sys

from . import rdma, system
from .finding import FAULT, INFO, OK, WARNING, Finding

CONFIGURATION = "/etc/rdma/sroce.conf"
MIB = 1 << 20


def found(level, check, text, advice=None):
    """A finding about the host."""
    return Finding(level, "this host", check, text, advice)


# --- the kernel module ----------------------------------------------------------------------------------------


def build_id(notes):
    """The id that the linker gave a module, from its ELF note; None if there is none."""
    if len(notes) < 16:
        return None
    name, size = (int.from_bytes(notes[at:at + 4], sys.byteorder) for at in (0, 4))
    start = 12 + (name + 3) // 4 * 4
    return notes[start:start + size] or None


def module_file():
    """The module that modprobe would take."""
    file = system.run("modinfo", "-F", "filename", "sroce")
    return file.strip() if file else None


def another_is_installed(file):
    """Is the loaded module another one than the file? None if nobody knows."""
    try:
        with open("/sys/module/sroce/notes/.note.gnu.build-id", "rb") as notes:
            loaded = build_id(notes.read())
        opener = {".xz": lzma.open, ".gz": gzip.open}.get(os.path.splitext(file)[1], open)
        if not loaded or file.endswith(".zst"):
            return None
        with opener(file, "rb") as module:
            return loaded not in module.read()
    except (OSError, EOFError, lzma.LZMAError):
        return None


def secure_boot():
    """Does the firmware let only signed kernels boot, which then let only signed modules in?"""
    for path in glob.glob("/sys/firmware/efi/efivars/SecureBoot-*"):
        try:
            with open(path, "rb") as variable:
                return variable.read()[4:5] == b"\1"
        except OSError:
            continue
    return False


def check_module():
    """Is it there for this kernel, can it be loaded, is it the one that is loaded?"""
    release, file = platform.release(), module_file()
    loaded = os.path.isdir("/sys/module/sroce")
    if not file and not loaded:
        advice = "install sroce-dkms, or build it: make && make modules_install && depmod -a"
        dkms = system.run("dkms", "status", "sroce")
        if dkms and dkms.strip():
            advice = f"DKMS has it, but not for this kernel ({dkms.strip().splitlines()[0]}).\n" \
                     f"Install the kernel's headers, then: dkms autoinstall -k {release}"
        yield found(FAULT, "module", f"there is no module sroce for kernel {release}", advice)
        return
    if not loaded:
        if secure_boot() and not system.run("modinfo", "-F", "signer", "sroce").strip():
            yield found(FAULT, "module", "the module is not signed, and with Secure Boot the kernel takes no such module",
                        "sign it, or let DKMS do so with a key that is enrolled: Documentation/install.md")
        else:
            yield found(WARNING, "module", f"the module is not loaded (kernel {release})", "modprobe sroce")
        return
    if not file:
        yield found(WARNING, "module", f"the module is loaded, but modprobe finds none for kernel {release}",
                    "it will be gone after a reboot: make modules_install && depmod -a")
    elif another_is_installed(file):
        yield found(WARNING, "module", f"another build of the module is loaded than the one in {file}",
                    "rdma link del each device, then: modprobe -r sroce && modprobe sroce")
    else:
        yield found(OK, "module", f"the module is loaded (kernel {release})")
    for name, worth in (("gso", "Y"), ("direct", "Y")):
        value = system.read(f"/sys/module/sroce/parameters/{name}")
        if value not in (None, worth):
            yield found(INFO, "module", f"module parameter {name} is {value}, which costs speed")


def check_rxe():
    """rdma_rxe takes the same UDP port."""
    others = [device.name for device in rdma.devices() if device.netdev and device.is_rxe()]
    if others:
        yield found(WARNING, "rxe", f"rdma_rxe has UDP port 4791 of this network namespace ({', '.join(others)})",
                    "sroce can have no device beside it: rdma link del those, or use another namespace")


# --- user space ---------------------------------------------------------------------------------------------------


def providers():
    """Folder and version of the providers that libibverbs loads here, and whether sroce's is among them."""
    for pattern in ("/usr/lib/*/libibverbs", "/usr/lib64/libibverbs", "/usr/lib/libibverbs"):
        for folder in sorted(glob.glob(pattern)):
            versions = {}
            for file in glob.glob(f"{folder}/lib*-rdmav*.so"):
                name, _, version = os.path.basename(file)[3:-3].rpartition("-rdmav")
                versions.setdefault(name, []).append(version)
            if versions:
                yield folder, versions


def check_provider():
    """Has libibverbs a provider for sroce that it takes?"""
    devices = [device.name for device in rdma.devices() if device.is_sroce()]
    known = rdma.of_libibverbs()
    if known is None:
        yield found(WARNING, "provider", "libibverbs is not installed: only the kernel can use a device",
                    "install libibverbs1 (rdma-core)")
        return
    missing = [name for name in devices if name not in known]
    if devices and not missing:
        yield found(OK, "provider", "libibverbs has a provider for sroce")
        return
    level = FAULT if missing else WARNING
    ours = theirs = folder = None
    for folder, versions in providers():
        ours, others = versions.get("sroce"), {one for name in versions if name != "sroce" for one in versions[name]}
        theirs = others if ours or not theirs else theirs
        if ours:
            break
    if not ours:
        yield found(level, "provider", "libibverbs has no provider for sroce",
                    "install libibverbs-sroce, or build it: make install")
    elif theirs and not theirs & set(ours):
        yield found(level, "provider", f"the provider is for another libibverbs (interface {ours[0]}, it has {max(theirs)})",
                    "it was built for another rdma-core: build it again, or install the package for this one")
    elif not os.path.exists("/etc/libibverbs.d/sroce.driver"):
        yield found(level, "provider", "libibverbs is not told of the provider: there is no /etc/libibverbs.d/sroce.driver",
                    "install libibverbs-sroce again")
    elif missing:
        yield found(FAULT, "provider", f"libibverbs does not take its provider for {', '.join(missing)}",
                    "it tells why: ibv_devices\nAfter an upgrade of rdma-core the provider has to be built for it")
    else:
        yield found(OK, "provider", f"a provider for sroce is in {folder}")


def check_files():
    """May everybody open what verbs and rdma_cm go through?"""
    for name, module, what in (("uverbs*", "ib_uverbs", "verbs"), ("rdma_cm", "rdma_ucm", "rdma_cm")):
        files = glob.glob(f"/dev/infiniband/{name}")
        if not files:
            if name == "rdma_cm" or rdma.devices():
                yield found(WARNING, "files", f"there is no /dev/infiniband/{name}: no {what} for applications",
                            f"modprobe {module}")
            continue
        closed = [file for file in files if os.stat(file).st_mode & 0o666 != 0o666]
        if closed:
            yield found(WARNING, "files", f"only some users may open {closed[0]}: {what} fail for the others",
                        "rdma-core's udev rules make it 0666; without them: chmod 666 " + " ".join(closed))
        else:
            yield found(OK, "files", f"everybody may open {files[0]}")


def check_memlock():
    """Memory that is registered counts against RLIMIT_MEMLOCK."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        yield found(OK, "memlock", "memory that may be registered: no limit (of this login)")
        return
    level = WARNING if soft < 64 * MIB else INFO
    more = "" if hard == soft else f", {'without limit' if hard == resource.RLIM_INFINITY else f'{hard // MIB} MiB'} when asked for"
    yield found(level, "memlock", f"a process without privileges may register {soft // MIB} MiB of memory{more}",
                "in /etc/security/limits.d/rdma.conf: * - memlock unlimited\n"
                "for services: LimitMEMLOCK=infinity" if level == WARNING else None)


def check_configuration():
    """Has each netdev that is there and named in the configuration its device?"""
    text = system.read(CONFIGURATION)
    if text is None:
        return
    have = {device.netdev for device in rdma.devices()}
    named = [line.split()[0] for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    lacking = [name for name in named if name not in have and os.path.exists(f"/sys/class/net/{name}")]
    if lacking:
        yield found(FAULT, "configuration", f"{CONFIGURATION} wants a device on {', '.join(lacking)}",
                    "sroce-netdev makes it, or says why not")
    elif named:
        yield found(OK, "configuration", f"all netdevs that {CONFIGURATION} names and that are there have their device")


def check_backlog():
    """Packets that the kernel has dropped because a processor had too many to look at."""
    dropped = sum(int(line.split()[1], 16) for line in system.read("/proc/net/softnet_stat", "").splitlines())
    if dropped:
        yield found(WARNING, "backlog", f"processors have dropped {dropped} packets of any kind since boot, for want of room",
                    "sysctl net.core.netdev_max_backlog=10000")


def check():
    """All of it, in the order in which one needs it."""
    for one in (check_module, check_rxe, check_provider, check_files, check_memlock, check_configuration, check_backlog):
        yield from one()
