#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""migration.py SOURCE DESTINATION PORT URI ADDRESS FILE PIN SLOW : have a virtual machine of QEMU's move from host to host.

SOURCE and DESTINATION are where their monitors (QMP) listen on PORT; the destination is this host. The machine's memory from
ADDRESS on has what is in FILE, and is looked at there after the move. PIN: all of the memory is registered at once ("on"), or
piece by piece ("off"). SLOW: each time limit is so many times longer than usual.
"""

import json
import os
import socket
import sys
import tempfile
import time

SLOW = float(sys.argv[8])


class Monitor:
    """One QEMU's monitor."""

    def __init__(self, address):
        self.socket = socket.create_connection((address, int(sys.argv[3])), timeout=60 * SLOW)
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        """Return the answer to a command; events in between are passed over."""
        json.dump({"execute": command, "arguments": arguments}, self.file)
        self.file.flush()
        while True:
            line = self.file.readline()
            if not line:
                raise SystemExit(f"{command}: QEMU has gone")
            answer = json.loads(line)
            if "error" in answer:
                raise SystemExit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]


def moved(source):
    """Wait until the machine has moved; say what it was."""
    end = time.monotonic() + 100 * SLOW
    while time.monotonic() < end:
        info = source.ask("query-migrate")
        if info.get("status") in ("completed", "failed", "cancelled"):
            return info
        time.sleep(0.2)
    return info


def main():
    """See above."""
    source, destination = (Monitor(address) for address in sys.argv[1:3])
    uri, address, name, pin = sys.argv[4], int(sys.argv[5], 0), sys.argv[6], sys.argv[7]
    for monitor in (source, destination):
        monitor.ask("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pin == "on"}])
    destination.ask("migrate-incoming", uri=uri)
    source.ask("migrate", uri=uri)
    info = moved(source)
    print("source:", info.get("status"), info.get("error-desc", ""), info.get("ram", {}).get("transferred"), "bytes")
    if info.get("status") != "completed":
        return 1
    end = time.monotonic() + 20 * SLOW
    while not destination.ask("query-status")["running"]:
        if time.monotonic() > end:
            print("destination:", destination.ask("query-status")["status"])
            return 1
        time.sleep(0.1)
    with tempfile.TemporaryDirectory() as folder:
        saved = os.path.join(folder, "memory")
        destination.ask("pmemsave", val=address, size=os.path.getsize(name), filename=saved)
        with open(name, "rb") as first, open(saved, "rb") as second:
            if first.read() != second.read():
                print("destination: its memory is not the same")
                return 1
    print("destination: runs, and its memory is the same")
    return 0


sys.exit(main())
