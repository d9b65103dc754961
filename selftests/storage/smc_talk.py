#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""smc_talk.py setup NETDEV RDMADEV... : put each pair into a physical network of its own, and set an EID
smc_talk.py serve ADDRESS : an SMC socket that sends back what it gets, in reverse order; for ever
smc_talk.py run ADDRESS PEER BYTES [CONNECTIONS] : talk to it through SMC sockets, compare
smc_talk.py fallbacks : how many connections became ones of TCP (both ends counted), and why"""

import ctypes
import os
import socket
import struct
import sys
import threading

AF_SMC, PORT = 43, 7100


def attribute(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def attributes(data):
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, offset)
        if length < 4:
            return
        yield kind & 0x3fff, data[offset + 4:offset + length]
        offset += (length + 3) & ~3


class Netlink:
    def __init__(self, family):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.socket.settimeout(5)
        self.family = 16
        answer = self.ask(3, 1, attribute(2, family.encode() + b"\0"))
        self.family = [struct.unpack("H", d)[0] for k, d in attributes(answer[20:]) if k == 1][0]

    def ask(self, command, version, data, flags=5):
        data = struct.pack("BBH", command, version, 0) + data
        self.socket.send(struct.pack("IHHII", 16 + len(data), self.family, flags, 1, 0) + data)
        return self.socket.recv(65536)

    def do(self, *arguments):
        error = struct.unpack_from("i", self.ask(*arguments), 16)[0]
        if error and error != -17:
            raise OSError(-error, os.strerror(-error))


def setup(names):
    net = Netlink("SMC_PNETID")
    for netdev, rdmadev in zip(names[::2], names[1::2]):
        # local to this host: what the other end calls its network is another matter
        network = attribute(1, netdev.upper().encode() + b"\0")
        net.do(2, 1, network + attribute(2, netdev.encode() + b"\0"))
        net.do(2, 1, network + attribute(3, rdmadev.encode() + b"\0") + attribute(4, b"\1"))
    Netlink("SMC_GEN_NETLINK").do(10, 1, attribute(1, b"SROCE".ljust(32) + b"\0"))


def smc_socket():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.socket(AF_SMC, socket.SOCK_STREAM, 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "no SMC socket")
    # the addresses are those of IPv4
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fd)
    s.settimeout(60)
    return s


def receive(s, n):
    data = bytearray()
    while len(data) < n:
        part = s.recv(min(n - len(data), 1 << 18))
        if not part:
            raise EOFError(f"{len(data)} of {n} bytes")
        data += part
    return bytes(data)


def answer(s):
    """Everything comes before anything goes back: the length stands in front"""
    try:
        with s:
            s.settimeout(60)
            s.sendall(receive(s, struct.unpack("Q", receive(s, 8))[0])[::-1])
    except (OSError, EOFError) as error:
        print(error, flush=True)


def serve(address):
    listener = smc_socket()
    listener.settimeout(None)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen(16)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def talk(address, peer, n, errors):
    try:
        with smc_socket() as s:
            s.bind((address, 0))
            s.connect((peer, PORT))
            data = os.urandom(n)
            sender = threading.Thread(target=s.sendall, args=(struct.pack("Q", n) + data,))
            sender.start()
            if receive(s, n) != data[::-1]:
                raise ValueError("data differs")
            sender.join()
    except Exception as error:
        errors.append(error)


def run(address, peer, n, connections=1):
    errors = []
    clients = [threading.Thread(target=talk, args=(address, peer, n, errors)) for _ in range(connections)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    if errors:
        raise errors[0]
    print(f"{connections} x {n} bytes to and fro")


def fallbacks():
    """SMC_NETLINK_GET_FBACK_STATS: each reason (SMC_CLC_DECL_*, errno) comes with the sums of servers and of clients"""
    net = Netlink("SMC_GEN_NETLINK")
    data = net.ask(8, 1, b"", 0x301)
    count = 0
    reasons = set()
    while True:
        offset = 0
        while offset + 16 <= len(data):
            length, kind = struct.unpack_from("IH", data, offset)
            if kind == 3:
                return count, reasons
            for _, nest in attributes(data[offset + 20:offset + length]):
                fields = dict(attributes(nest))
                if 4 in fields:
                    reasons.add(f"{struct.unpack('I', fields[4])[0]:08x}")
                count = max(count, sum(struct.unpack("Q", fields[k])[0] for k in (2, 3) if k in fields))
            offset += (length + 3) & ~3
        data = net.socket.recv(65536)


def main():
    if sys.argv[1] == "setup":
        setup(sys.argv[2:])
    elif sys.argv[1] == "serve":
        serve(sys.argv[2])
    elif sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
    else:
        count, reasons = fallbacks()
        print(count, *sorted(reasons))


main()
