# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Checks of what all devices of a host need: module, provider, device files, limits."""
import glob
import gzip
import lzma
import os
import platform
import sys
import zlib

from . import memlock, rdma, system
from .finding import FAULT, INFO, OK, WARNING, Finding
from .growth import Growth, share

CONFIGURATION = "/etc/rdma/sroce.conf"


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
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return None


def only_signed():
    """Does the kernel take only signed modules?"""
    enforced = system.read("/sys/module/module/parameters/sig_enforce")
    lockdown = system.read("/sys/kernel/security/lockdown")
    if enforced == "Y" or (lockdown and "[none]" not in lockdown):
        return True
    return secure_boot() if lockdown is None else False


def secure_boot():
    """Does the firmware let only signed kernels boot, which mostly let only signed modules in?"""
    for path in glob.glob("/sys/firmware/efi/efivars/SecureBoot-*"):
        try:
            with open(path, "rb") as variable:
                return variable.read()[4:5] == b"\1"
        except OSError:
            continue
    return False


def no_module(release):
    """There is none to be found."""
    if not os.path.isdir(f"/lib/modules/{release}"):
        return found(WARNING, "module", f"the module is not loaded, and whether there is one cannot be seen here: there is no /lib/modules/{release}",
                     "in a container: look on its host; on a host: the kernel was upgraded, and the one that runs has lost its modules")
    if not system.program("modinfo"):
        return found(WARNING, "module", "the module is not loaded, and whether there is one cannot be seen: modinfo (kmod) is not installed",
                     "install kmod, then: modprobe sroce")
    advice = "install sroce-dkms, or build it: make && make modules_install && depmod -a"
    dkms = system.run("dkms", "status", "sroce")
    if dkms and dkms.strip():
        advice = f"DKMS has it, but not for this kernel ({dkms.strip().splitlines()[0]}).\n" \
                 f"Install the kernel's headers, then: dkms autoinstall -k {release}"
    return found(FAULT, "module", f"there is no module sroce for kernel {release}", advice)


def loaded_module(release, file):
    """Is it the one that is loaded?"""
    if not file and system.program("modinfo") and os.path.isdir(f"/lib/modules/{release}"):
        return found(WARNING, "module", f"the module is loaded, but modprobe finds none for kernel {release}",
                     "it will be gone after a reboot: make modules_install && depmod -a")
    if file and another_is_installed(file):
        return found(WARNING, "module", f"another build of the module is loaded than the one in {file}",
                     "rdma link del each device, then: modprobe -r sroce && modprobe sroce")
    unseen = "" if file else "; whether it is there after a reboot cannot be seen here"
    return found(OK, "module", f"the module is loaded (kernel {release}){unseen}")


def check_module():
    """Is it there for this kernel, can it be loaded, is it the one that is loaded?"""
    release, file = platform.release(), module_file()
    if not os.path.isdir("/sys/module/sroce"):
        if not file:
            yield no_module(release)
        elif only_signed() and not (system.run("modinfo", "-F", "signer", "sroce") or "").strip():
            yield found(FAULT, "module", "the module is not signed, and this kernel takes no such module (Secure Boot)",
                        "sign it, or let DKMS do so with a key that is enrolled: Documentation/install.md")
        else:
            yield found(WARNING, "module", f"the module is not loaded (kernel {release})", "modprobe sroce")
        return
    yield loaded_module(release, file)
    for name, worth in (("gso", "Y"), ("direct", "Y")):
        value = system.read(f"/sys/module/sroce/parameters/{name}")
        if value not in (None, worth):
            yield found(INFO, "module", f"module parameter {name} is {value}, which costs speed")


def check_programs():
    """rdma is what most of the rest comes from."""
    if not system.program("rdma"):
        yield found(INFO, "rdma", "rdma (iproute2) is not installed: what devices there are, and their counters, is known only "
                    "as far as sysfs tells it")


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


def unseen_by_libibverbs(devices):
    """The devices, by name, that libibverbs cannot take for want of their file: that says nothing of providers."""
    return {device.name: device.file() for device in devices if device.file() and not os.path.exists(device.file())}


def check_provider():
    """Has libibverbs a provider for sroce that it takes?"""
    devices = [device for device in rdma.devices() if device.is_sroce()]
    known, unseen = rdma.of_libibverbs(), unseen_by_libibverbs(devices)
    if known is None:
        yield found(WARNING, "provider", "libibverbs is not installed: only the kernel can use a device",
                    "install libibverbs1 (rdma-core)")
        return
    names = [device.name for device in devices if device.name not in unseen]
    missing = [name for name in names if name not in known]
    if names and not missing:
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
        yield found(OK, "provider", f"a provider for sroce is in {folder}" +
                    ("; whether libibverbs takes it cannot be seen without the device's file" if unseen else ""))


def mode_of(file):
    """Who may do what with a file; 0 if it has gone."""
    try:
        return os.stat(file).st_mode
    except OSError:
        return 0


def check_files():
    """May everybody open what verbs and rdma_cm go through?"""
    devices = rdma.devices()
    gone = unseen_by_libibverbs([device for device in devices if device.is_sroce()])
    for name, file in gone.items():
        yield found(WARNING, "files", f"there is no {file} here, by which applications use {name}",
                    f"in a container: give it that file and /dev/infiniband/rdma_cm (docker run --device {file} ...)\n"
                    "on a host: modprobe ib_uverbs; is udev at work?")
    for name, module, what in (("uverbs*", "ib_uverbs", "verbs"), ("rdma_cm", "rdma_ucm", "rdma_cm")):
        files = glob.glob(f"/dev/infiniband/{name}")
        if not files:
            if name == "rdma_cm" or (devices and not gone):
                yield found(WARNING, "files", f"there is no /dev/infiniband/{name}: no {what} for applications",
                            f"modprobe {module}; in a container: --device /dev/infiniband/{name.replace('*', 'N')}")
            continue
        closed = [file for file in files if mode_of(file) & 0o666 != 0o666]
        if closed:
            yield found(WARNING, "files", f"only some users may open {closed[0]}: {what} fail for the others",
                        "rdma-core's udev rules make it 0666; without them: chmod 666 " + " ".join(closed))
        else:
            yield found(OK, "files", f"everybody may open {files[0]}")


def check_configuration():
    """Has each netdev that is there and named in the configuration its device?"""
    text = system.read(CONFIGURATION)
    if text is None:
        return
    have = {device.netdev for device in rdma.devices()}
    # As sroce-netdev reads it: a word that begins with # is a comment, and one that has it inside is not
    named = [line.split()[0] for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    lacking = [name for name in named if "/" not in name and name not in have and os.path.exists(f"/sys/class/net/{name}")]
    if lacking:
        yield found(FAULT, "configuration", f"{CONFIGURATION} wants a device on {', '.join(lacking)}",
                    "sroce-netdev makes it, or says why not")
    elif named:
        yield found(OK, "configuration", f"all netdevs that {CONFIGURATION} names and that are there have their device")


def backlog():
    """What processors have taken from netdevs, and dropped because they had too much to look at."""
    rows = [[int(word, 16) for word in line.split()[:2]] for line in system.read("/proc/net/softnet_stat", "").splitlines()]
    return {"packets": sum(row[0] for row in rows), "dropped": sum(row[1] for row in rows)}


def check_backlog(growth):
    """Packets that the kernel has dropped because a processor had too many to look at; growth: of backlog()."""
    total, now = growth.look(), growth.of("dropped")
    if total["dropped"]:
        yield found(WARNING if now else INFO, "backlog", f"processors have dropped {total['dropped']} packets of any kind since boot"
                    f"{share(total['dropped'], total['packets'] + total['dropped'])}, for want of room; {growth.lately(now)}",
                    "sysctl net.core.netdev_max_backlog=10000" if now else None)


def check():
    """All of it, in the order in which one needs it."""
    growth = Growth(backlog)
    for one in (check_programs, check_module, check_rxe, check_provider, check_files, memlock.check, check_configuration):
        yield from one()
    yield from check_backlog(growth)
