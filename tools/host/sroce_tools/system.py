# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Files of the kernel and the programs that tell more than they do.

Nothing here fails for a file that is not there or a program that is not installed: most of what is asked for is
optional somewhere, and the caller says what its absence means.
"""
import json
import os
import shutil
import subprocess

ENVIRONMENT = {**os.environ, "LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def read(path, default=None):
    """A file's text without the newline at its end."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return default


def read_number(path, default=None):
    """The whole number in a file."""
    try:
        return int(read(path, ""), 0)
    except ValueError:
        return default


def entries(path):
    """The names in a folder, sorted; none if there is no such folder."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def program(name):
    """Where a program is, or None."""
    return shutil.which(name, path=ENVIRONMENT["PATH"])


def run(*command, timeout=20, stdin=None):
    """What a program has printed, or None if it failed, hung or is not there."""
    if not program(command[0]):
        return None
    try:
        done = subprocess.run(command, env=ENVIRONMENT, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=timeout, text=True, errors="replace", check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def run_json(*command, timeout=20):
    """What a program has printed as JSON, or None.

    Names that others chose may be in it, with control characters that iproute2 prints as they are.
    """
    try:
        return json.loads(run(*command, timeout=timeout) or "", strict=False)
    except (ValueError, RecursionError):
        return None
