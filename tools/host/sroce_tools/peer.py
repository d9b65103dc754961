# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The path to another host, tried from both ends.

The two programs talk over a TCP connection, in lines of JSON, and have rping of rdma-core (connections by rdma_cm, SEND,
READ, WRITE) carry small and large messages between the devices that have the connection's addresses. Where that fails,
the counters of both ends tell how far the packets came.

Whoever can reach the listener's port can ask for its device's name, MTU, counters and kernel and have it take part in
such a test. Neither end trusts the other: of what it says, numbers within limits and short names are taken, and the
address is that of the connection.
"""
import contextlib
import json
import platform
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

from . import rdma, system
from .device import HEADERS, PATH_MTUS, mtu_of
from .finding import FAULT, INFO, OK, WARNING, Finding, visible

PORT = 18514
PATIENCE = 20  # seconds for one test
LONGEST = 240  # seconds that the other end may take in all
SMALL, LARGE = 64, 65000  # rping's largest is a little more
IDLE = 1  # seconds without a test of ours, in which everything that the counters count is somebody else's
TOOL = "rping"
CLOSED = "rdma_get_cm_event: Bad file descriptor"
HARMLESS = re.compile(rf"{CLOSED}|(client|server) DISCONNECT EVENT|(server )?ping data: ")


class Line:
    """A connection that carries lines of JSON."""

    def __init__(self, connection):
        self.connection = connection
        connection.settimeout(PATIENCE + 20)
        self.file = connection.makefile("r", encoding="utf-8", errors="replace")

    def say(self, **what):
        """Send one."""
        self.connection.sendall(json.dumps(what).encode() + b"\n")

    def hear(self):
        """The next one; an OSError for whatever else comes, or does not."""
        try:
            said = json.loads(self.file.readline(16384))
        except (ValueError, RecursionError) as error:
            raise ConnectionError("the other end ended the connection") from error
        if not isinstance(said, dict):
            raise ConnectionError("the other end speaks of something else")
        return said

    def ask(self, **what):
        """Send one and take the answer."""
        self.say(**what)
        return self.hear()


def plain(address):
    """An address of a socket, as other programs have it."""
    address = address[0].partition("%")[0]
    return address[7:] if address.startswith("::ffff:") else address


def checked(said, address):
    """What the other end says of itself, as far as it can be right."""
    device, mtu = said.get("device"), said.get("mtu")
    return {"address": address, "device": device[:64] if isinstance(device, str) else None,
            "mtu": mtu if isinstance(mtu, int) and 0 <= mtu <= 1 << 20 else 0,
            "kernel": str(said.get("kernel"))[:64], "tool": said.get("tool") is True}


def numbers(said):
    """Counters that the other end has named, as far as they can be any."""
    return {str(name)[:64]: value for name, value in said.items() if isinstance(value, int) and 0 <= value < 1 << 64}


def place_of(address):
    """The device that has an address of this host, and the netdev that the address is on; (None, None) if there is none."""
    # Devices of other network namespaces, which may have the same address, have no netdev here
    for device in [one for one in rdma.devices() if one.netdev]:
        for gid in device.gids():
            if str(gid.address) == address and gid.version == 2:
                return device, gid.netdev or device.netdev
    return None, None


def device_of(address):
    """The device that has an address of this host."""
    return place_of(address)[0]


def description(connection):
    """What an end says of itself."""
    address = plain(connection.getsockname())
    device, netdev = place_of(address)
    mtu = mtu_of(netdev)[0] if device else 0
    return {"address": address, "device": device and device.name, "mtu": mtu, "kernel": platform.release(),
            "tool": bool(system.program(TOOL))}


def ping(*arguments):
    """Start rdma-core's program."""
    return subprocess.Popen([TOOL, *arguments], env=system.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace")


def listens(process):
    """Does a process wait for connections of rdma_cm?"""
    found = system.run_json("rdma", "-j", "resource", "show", "cm_id", "pid", str(process.pid))
    return found is not None and any(one.get("state") == "LISTEN" for one in found)


def wait(process):
    """Its end: did it go well, and what has it said last?"""
    try:
        said, _ = process.communicate(timeout=PATIENCE)
        complaints = [line for line in said.splitlines() if line.strip() and not HARMLESS.match(line)]
        # When all is done, rping may find the file of its events closed by its other thread, and ends with 255
        good = process.returncode == 0 or (process.returncode == 255 and CLOSED in said and not complaints)
        return good, (complaints[-1:] or [f"ended with status {process.returncode}"])[0][:200]
    except subprocess.TimeoutExpired:
        return False, f"did not end within {PATIENCE} s"
    finally:
        # also if somebody has interrupted this
        process.kill()
        process.wait()
        process.stdout.close()


# --- the end that waits -----------------------------------------------------------------------------------------


def number_of(said, name, most):
    """A number that the peer has named, within its limit."""
    value = said.get(name)
    if not isinstance(value, int) or not 1 <= value <= most:
        raise ConnectionError(f"the other end wants {name} {value!r}")
    return value


def take(line, own, port, said):
    """Be the other end of one test."""
    size, number = number_of(said, "size", LARGE), number_of(said, "number", 100000)
    process, end = ping("-s", "-a", own["address"], "-p", str(port), "-S", str(size), "-C", str(number)), time.monotonic() + 10
    try:
        while process.poll() is None and not listens(process) and time.monotonic() < end:
            time.sleep(0.05)
        line.say(ready=process.poll() is None)
        good, text = wait(process)
        line.say(good=good, text=text)
    finally:
        process.kill()
        process.wait()


def serve(connection, port):
    """One peer, from its first question to its last."""
    line, own = Line(connection), description(connection)
    device = device_of(own["address"])
    while True:
        said = line.hear()
        what = said.get("ask")
        if what == "who":
            line.say(**own)
        elif what == "counters" and device:
            line.say(**device.counters())
        elif what == "take" and device and own["tool"]:
            take(line, own, port, said)
        else:
            return


def too_long(*_):
    """What the alarm clock does."""
    raise TimeoutError("it has taken too long")


@contextlib.contextmanager
def limited():
    """Nobody may take longer than that, whatever he says meanwhile."""
    signal.signal(signal.SIGALRM, too_long)
    try:
        signal.alarm(LONGEST)
        yield
    finally:
        signal.alarm(0)


def listen(port, once):
    """Be the other end."""
    # By way of take(), which ends its program
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    both = socket.has_dualstack_ipv6()
    with socket.create_server(("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both) as server:
        print(f"sroce-check: waiting for --peer on TCP port {port}", flush=True)
        while True:
            try:
                connection, address = server.accept()
            except ConnectionError:
                # who has gone before it came
                continue
            with connection:
                print(f"sroce-check: {address[0]}", flush=True)
                try:
                    with limited():
                        serve(connection, port)
                except (OSError, ValueError) as error:
                    print(f"sroce-check: {address[0]}: {visible(str(error))}", flush=True)
            if once:
                return 0


# --- the end that asks ---------------------------------------------------------------------------------------------


class Path:
    """The path to a peer, from this end."""

    def __init__(self, host, port, line):
        self.host, self.port, self.line = host, port, line
        self.here = description(line.connection)
        self.there = checked(line.ask(ask="who"), plain(line.connection.getpeername()))
        (self.device, self.netdev), self.number = place_of(self.here["address"]), 20

    def found(self, level, check, text, advice=None):
        """A finding about this path."""
        return Finding(level, f"the path to {self.host}", check, text, advice)

    def counted(self):
        """The counters of both ends."""
        return self.device.counters(), numbers(self.line.ask(ask="counters"))

    def attempt(self, size, number):
        """Messages there and back: did it work, what was said, in what time, and what both ends have counted meanwhile."""
        before = self.counted()
        if not self.line.ask(ask="take", size=size, number=number).get("ready"):
            raise ConnectionError(f"{TOOL} does not start there: {str(self.line.hear().get('text'))[:200]}")
        start = time.monotonic()
        good, text = wait(ping("-c", "-a", self.there["address"], "-I", self.here["address"], "-p", str(self.port),
                               "-S", str(size), "-C", str(number)))
        took = time.monotonic() - start
        answer = self.line.hear()
        rose = [{name: now[name] - then.get(name, 0) for name in now} for then, now in zip(before, self.counted())]
        if not answer.get("good"):
            text += f"; there: {str(answer.get('text'))[:200]}"
        return good and answer.get("good"), text, took, rose

    def path_mtu(self):
        """The payload of the packets, as both devices have it."""
        least = min(self.here["mtu"], self.there["mtu"])
        return next((size for size in PATH_MTUS if size + HEADERS <= least), 0)

    def pings(self, size):
        """Does a packet with so many bytes come there whole?"""
        return system.run("ping", "-M", "do", "-c", "3", "-W", "1", "-i", "0.2", "-s", str(size), self.there["address"]) is not None

    def others(self):
        """The names of the counters, of both ends, that grow without a test: others are at work on these devices."""
        before = self.counted()
        time.sleep(IDLE)
        return [{name for name in now if now[name] > then.get(name, 0)} for then, now in zip(before, self.counted())]

    def why(self, rose, large, others):
        """What the counters say of a test that failed; others: those that prove nothing when they have grown.

        A counter that has not grown says more: what is not counted has not come, whoever else is at work.
        """
        here, there = rose
        us, them = self.here["address"], self.there["address"]
        unknown = [address for one, address in ((here, us), (there, them)) if "tx_trains" not in one]
        if unknown:
            return f"how far its packets came is not known, for want of sroce's counters at {' and '.join(unknown)}", None
        if any(one.get("rx_icrc_encapsulated") and "rx_icrc_encapsulated" not in busy for one, busy in zip(rose, others)):
            return "packets come with a wrong ICRC", "something on the way changes them: NAT, or a NIC's offloads"
        if large and there.get("rdma_rx_packets", 0) > 200 and "rdma_rx_packets" not in others[1]:
            return ("they pass, and too slowly", "the path is slow, or loses much: Documentation/networks.md")
        if large:
            small, full = (self.pings(size) for size in (56, self.path_mtu() + HEADERS - 48))
            return ("small packets come through and large ones do not" +
                    (f", nor does a ping of {self.path_mtu() + HEADERS - 48} bytes" if small and not full else ""),
                    f"the MTU is smaller somewhere on the way: have that of both hosts ({self.here['mtu']}, "
                    f"{self.there['mtu']}) on every switch, or a smaller one on the hosts")
        if not here.get("rdma_tx_packets"):
            return "no packet has left this host", "is there a firewall, or no route? sroce-check"
        if not any(value for name, value in there.items() if name.startswith(("rx_", "rdma_rx"))):
            return (f"packets leave {us} and do not come to {them}",
                    f"let UDP port 4791 into {them} (sroce-check there), and through what is between")
        if not here.get("rdma_rx_packets"):
            return (f"packets come to {them}, and its answers do not come to {us}",
                    f"let UDP port 4791 into {us} (sroce-check), and through what is between")
        if "rdma_rx_packets" in others[0] | others[1]:
            return ("others are at work on these devices, so their counters do not tell how far its packets came",
                    f"without other traffic; or: tcpdump -ni {shlex.quote(self.netdev)} udp port 4791 and host {them}, and likewise there")
        return "packets come through both ways", None

    def small(self):
        """Does it work at all, and how fast?"""
        number = 100
        good, text, took, rose = self.attempt(SMALL, number)
        if not good and rose[0].get("rdma_rx_packets") and rose[1].get("rdma_rx_packets"):
            # Where packets are lost, rping may miss the other end's goodbye
            good, text, took, rose = self.attempt(SMALL, number)
        # As many large ones as take some seconds
        self.number = max(20, min(500, int(200 / max(took, 0.1))))
        if good:
            yield self.found(OK, "reach", f"RDMA works: a connection, and {number} messages there and back, in {took:.2f} s")
        else:
            why, advice = self.why(rose, False, self.others())
            yield self.found(FAULT, "reach", f"RDMA does not work: {why} ({TOOL} {text})", advice)

    def large(self):
        """Do packets of full size pass, and are any lost?"""
        number = self.number
        good, text, took, rose = self.attempt(LARGE, number)
        if not good:
            why, advice = self.why(rose, True, self.others())
            yield self.found(FAULT, "mtu", f"large messages do not pass: {why} ({TOOL} {text})", advice)
            return
        yield self.found(OK, "mtu", f"large messages pass: {number} of {LARGE} bytes there and back, one at a time, in {took:.2f} s")
        for counts, who in zip(rose, ("this host", self.host)):
            resent, sent = counts.get("retrans_packets", 0), counts.get("rdma_tx_packets", 0)
            if resent * 1000 > sent:
                yield self.found(WARNING, "loss", f"{who} had to send {resent} of {sent} packets again, of all that its device has sent meanwhile",
                                 "packets are lost on the way: Documentation/networks.md")

    def check(self):
        """All of it."""
        for end, who in ((self.here, "this host"), (self.there, self.host)):
            if not end.get("device"):
                yield self.found(FAULT, "device", f"{who} has no RDMA device with the address {end.get('address')}",
                                 "sroce-check there says more")
            elif not end.get("tool"):
                yield self.found(WARNING, "tool", f"{who} has no {TOOL}: nothing can be tried", "install rdmacm-utils (librdmacm-utils)")
            else:
                yield self.found(INFO, "device", f"{who}: {end['device']}, {end['address']}, MTU {end['mtu']}, kernel {end['kernel']}")
        if not all(end.get("device") and end.get("tool") for end in (self.here, self.there)):
            return
        if self.here["mtu"] != self.there["mtu"]:
            yield self.found(INFO, "mtu", f"the two hosts have different MTUs; packets carry {self.path_mtu()} bytes")
        failed = False
        for finding in self.small():
            failed = finding.level == FAULT
            yield finding
        if not failed:
            yield from self.large()


def check(host, port):
    """Try the path to a host that listens."""
    try:
        with limited(), socket.create_connection((host, port), timeout=10) as connection:
            line = Line(connection)
            yield from Path(host, port, line).check()
            line.say(ask="nothing more")
    except OSError as error:
        yield Finding(FAULT, f"the path to {host}", "peer", f"TCP port {port} there: {error}",
                      f"there: sroce-check --listen (and let TCP port {port} through its firewall)")
