# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Memory that is registered counts against RLIMIT_MEMLOCK, unless the process has CAP_IPC_LOCK. Whose limit is which?

The limit of the login that sroce-check runs in is root's, mostly, who has none. Users get theirs from pam_limits when
they log in, and services from systemd.
"""
import glob
import os
import pwd
import resource

from . import system
from .finding import INFO, OK, WARNING, Finding

MIB, ENOUGH = 1 << 20, 64 << 20
NONE = float("inf")
CAP_IPC_LOCK = 1 << 14
PAM = ("/etc/security/limits.conf", "/etc/security/limits.d/*.conf")


def found(level, text, advice=None):
    """A finding about limits."""
    return Finding(level, "this host", "memlock", text, advice)


def number(text, unit=1):
    """A limit, as one of the many who write limits has written it; None for something else."""
    if text in ("unlimited", "infinity", "-1"):
        return NONE
    if not (text or "").isdigit():
        return None
    return NONE if int(text) * unit >= 1 << 63 else int(text) * unit


def amount(limit):
    """A limit, for people."""
    if limit == NONE:
        return "any amount of memory"
    return f"{limit // MIB} MiB of memory" if limit >= MIB else f"{limit // 1024} KiB of memory"


# --- this process -----------------------------------------------------------------------------------------------


def is_privileged():
    """Has this process no limit, whatever it is? In a container with users of its own it needs more than its root has."""
    status = dict(line.split(":", 1) for line in system.read("/proc/self/status", "").splitlines() if ":" in line)
    everybody = system.read("/proc/self/uid_map", "").split() in (["0", "0", "4294967295"], [])
    return bool(int(status.get("CapEff", "0"), 16) & CAP_IPC_LOCK) and everybody


def own():
    """The limit of who runs this."""
    try:
        who = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        who = f"user {os.geteuid()}"
    if is_privileged():
        return found(OK, f"{who}, here, may register any amount of memory (CAP_IPC_LOCK)")
    soft, hard = (NONE if one == resource.RLIM_INFINITY else one for one in resource.getrlimit(resource.RLIMIT_MEMLOCK))
    more = f", {amount(hard)} when asked for" if hard > soft else ""
    return found(OK if soft == NONE else INFO if soft >= ENOUGH else WARNING,
                 f"{who}, in this login, may register {amount(soft)}{more}",
                 "see what is said of users, and log in anew" if soft < ENOUGH else None)


# --- services ---------------------------------------------------------------------------------------------------


def of_services():
    """Soft and hard limit of a service that asks for none, and who says so; None for what nobody says."""
    if os.path.isdir("/run/systemd/system"):
        said = system.run("systemctl", "show", "-p", "DefaultLimitMEMLOCKSoft", "-p", "DefaultLimitMEMLOCK") or ""
        values = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        hard = number(values.get("DefaultLimitMEMLOCK"))
        soft = number(values.get("DefaultLimitMEMLOCKSoft"))
        return (hard if soft is None else soft, hard), "systemd's DefaultLimitMEMLOCK"
    for line in system.read("/proc/1/limits", "").splitlines():
        if line.startswith("Max locked memory"):
            soft, hard = (line.split() + ["", ""])[3:5]
            return (number(soft), number(hard)), "as process 1 has it"
    return (None, None), ""


# --- users ------------------------------------------------------------------------------------------------------


def lines_of_pam(texts):
    """What pam_limits is told of memlock: by domain, soft and hard limits (None: not told); texts: of its files, in order."""
    told = {}
    for text in texts:
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            value = number(words[3], 1024) if len(words) == 4 and words[2] == "memlock" else None
            if value is None or words[1] not in ("soft", "hard", "-"):
                continue
            soft, hard = told.get(words[0], (None, None))
            told[words[0]] = (value if words[1] != "hard" else soft, value if words[1] != "soft" else hard)
    return told


def files_of_pam():
    """The texts of pam_limits' files, in its order."""
    return [system.read(path, "") for pattern in PAM for path in sorted(glob.glob(pattern))]


def of_users(told, inherited):
    """The limit of a user of whom no line speaks; inherited: soft and hard of the service that has him log in. None: not known.

    Where a line speaks of the one only, the other stays, and pam_limits makes no soft limit larger than the hard one.
    """
    soft, hard = (theirs if ours is None else ours for ours, theirs in zip(told.get("*", (None, None)), inherited))
    return soft if hard is None or soft is None else min(soft, hard)


def users(told, inherited, source):
    """What users get who log in."""
    limit = of_users(told, inherited)
    special = [name for name in told if name not in ("*", "root")]
    others = f"; {', '.join(special[:3])}{' and others' if len(special) > 3 else ''}: as their own lines say" if special else ""
    if limit is None:
        return found(INFO, f"what users may register who log in is not known: no line for all of them in /etc/security/limits*{others}")
    source = "/etc/security/limits*" if limit in told.get("*", ()) else source
    level = OK if limit == NONE else INFO if limit >= ENOUGH or special else WARNING
    return found(level, f"users who log in may register {amount(limit)} in each process ({source}){others}",
                 "in /etc/security/limits.d/rdma.conf: * - memlock unlimited" if limit < ENOUGH else None)


def check():
    """All of it."""
    inherited, source = of_services()
    limit = inherited[0]
    yield own()
    yield users(lines_of_pam(files_of_pam()), inherited, source)
    if limit is None:
        yield found(INFO, "what services may register is not known: systemd does not say")
    else:
        unless = "" if limit == NONE else ", unless their unit asks for more or they are root's"
        yield found(OK if limit == NONE else INFO, f"services may register {amount(limit)} in each process ({source}){unless}",
                    "systemctl edit UNIT: [Service] LimitMEMLOCK=infinity" if limit < ENOUGH else None)
