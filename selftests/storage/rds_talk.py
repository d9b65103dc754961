#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rds_talk.py ADDRESS serve : an RDS socket of the RDMA transport at this address, for ever
rds_talk.py ADDRESS PEER ping|sizes|stream N|rdma : talk to it from this address; every byte is compared"""

import ctypes
import hashlib
import mmap
import os
import select
import socket
import struct
import sys

PORT, TIMEOUT = 4001, 25
AF_RDS, SOL_RDS = 21, 276
SO_RDS_TRANSPORT, RDS_TRANS_IB = 8, 0
RDS_CMSG_RDMA_ARGS, RDS_CMSG_RDMA_DEST, RDS_CMSG_RDMA_MAP, RDS_CMSG_RDMA_STATUS = 1, 2, 3, 4
READWRITE, USE_ONCE, NOTIFY_ME = 1, 8, 32


def rds(address, port):
    s = socket.socket(AF_RDS, socket.SOCK_SEQPACKET, 0)
    s.setsockopt(SOL_RDS, SO_RDS_TRANSPORT, struct.pack("I", RDS_TRANS_IB))
    # 33: SO_RCVBUFFORCE, 32: SO_SNDBUFFORCE
    for option in (32, 33):
        s.setsockopt(socket.SOL_SOCKET, option, 8 << 20)
    s.bind((address, port))
    s.settimeout(TIMEOUT)
    return s


def ping(s, server):
    """The kernel answers what is sent to port 0"""
    for _ in range(20):
        s.sendto(b"", (server[0], 0))
        _, sender = s.recvfrom(100)
        assert sender == (server[0], 0), sender


def sizes(s, server):
    for n in [1, 2, 100, 4095, 4096, 4097, 65536, 200001, (1 << 20) - 4]:
        message = b"echo" + os.urandom(n)
        s.sendto(message, server)
        assert s.recv(2 << 20) == message[::-1], f"{n} bytes differ"


def message(i):
    """The same on both sides"""
    return struct.pack("I", i) + STREAM[: i * 7919 % 33000]


STREAM = b"".join(hashlib.sha256(struct.pack("I", i)).digest() for i in range(1100))


def both_ways(s, peer, count):
    """Send COUNT messages, and receive as many: once each, in order, whole"""
    sent = received = 0
    s.setblocking(False)
    poll = select.poll()
    poll.register(s, select.POLLIN | select.POLLOUT)
    while sent < count or received < count:
        ready = poll.poll(25000)
        assert ready, f"nothing happens: {sent} sent, {received} received of {count}"
        event = ready[0][1]
        if event & select.POLLIN:
            try:
                data = s.recv(1 << 20)
            except BlockingIOError:
                continue
            assert data == message(received), f"message {received} differs"
            received += 1
        if event & select.POLLOUT and sent < count:
            try:
                s.sendto(message(sent), peer)
                sent += 1
            except OSError as error:
                assert error.errno in (11, 105), error
            if sent == count:
                poll.modify(s, select.POLLIN)
    s.settimeout(TIMEOUT)


def stream(s, server, count):
    s.sendto(b"stream" + struct.pack("I", count), server)
    both_ways(s, server, count)
    # it has all of ours
    assert s.recv(100) == b"end"


def address_of(buffer):
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def offer(s, buffer, length, to):
    """A message to somebody who may then read and write memory, once"""
    cookie = ctypes.c_uint64()
    # struct rds_get_mr_args
    args = struct.pack("QQQQ", address_of(buffer), length, ctypes.addressof(cookie), READWRITE | USE_ONCE)
    s.sendmsg([b"offer"], [(SOL_RDS, RDS_CMSG_RDMA_MAP, args)], 0, to)


def offered(s):
    """The cookie that came with the message"""
    data, control, _, _ = s.recvmsg(100, 1000)
    assert data == b"offer"
    return [struct.unpack("Q", d)[0] for level, kind, d in control if (level, kind) == (SOL_RDS, RDS_CMSG_RDMA_DEST)][0]


def rdma_message(s, to, cookie, buffer, length, write, token):
    vector = struct.pack("QQ", address_of(buffer), length)
    keep = ctypes.create_string_buffer(vector)
    # struct rds_rdma_args
    args = struct.pack("QQQQQQQ", cookie, 0, length, ctypes.addressof(keep), 1,
                       (READWRITE if write else 0) | NOTIFY_ME, token)
    s.sendmsg([b"done" if write else b"read"], [(SOL_RDS, RDS_CMSG_RDMA_ARGS, args)], 0, to)


def status_of(s, token):
    while True:
        _, control, _, _ = s.recvmsg(0, 1000)
        for level, kind, data in control:
            if level == SOL_RDS and kind == RDS_CMSG_RDMA_STATUS:
                got, status = struct.unpack_from("Qi", data)
                assert (got, status) == (token, 0), (got, status)
                return


def rdma(s, server):
    for n in (4096, 65536, 1 << 20):
        for write in (True, False):
            here = mmap.mmap(-1, n)
            here[:] = os.urandom(n)
            s.sendto(b"rdma" + struct.pack("I?", n, write), server)
            cookie = offered(s)
            rdma_message(s, server, cookie, here, n, write, n + write)
            status_of(s, n + write)
            assert s.recv(100) == hashlib.sha256(here).digest(), f"RDMA {'WRITE' if write else 'READ'} of {n} bytes differs"


def serve_rdma(s, client, n):
    there = mmap.mmap(-1, n)
    there[:] = os.urandom(n)
    offer(s, there, n, client)
    # comes behind the data
    s.recv(100)
    s.sendto(hashlib.sha256(there).digest(), client)


def serve(s):
    s.settimeout(None)
    while True:
        data, client = s.recvfrom(2 << 20)
        if data.startswith(b"echo"):
            s.sendto(data[::-1], client)
        elif data.startswith(b"stream"):
            both_ways(s, client, struct.unpack("I", data[6:])[0])
            s.sendto(b"end", client)
        elif data.startswith(b"rdma"):
            s.settimeout(TIMEOUT)
            serve_rdma(s, client, struct.unpack("I?", data[4:])[0])
        s.settimeout(None)


def main():
    address, peer = sys.argv[1:3]
    if peer == "serve":
        serve(rds(address, PORT))
    s, server = rds(address, PORT - 1), (peer, PORT)
    if sys.argv[3] == "stream":
        stream(s, server, int(sys.argv[4]))
    else:
        {"ping": ping, "sizes": sizes, "rdma": rdma}[sys.argv[3]](s, server)


main()
