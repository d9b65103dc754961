#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""rds_talk.py ADDRESS PEER ping|sizes|stream N|rdma : two RDS sockets of this host, one at each address,
talk over the RDMA transport; every byte is compared."""

import ctypes
import mmap
import os
import select
import socket
import struct
import sys

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
    s.settimeout(25)
    return s


def ping(a, _, peer):
    """The kernel answers what is sent to port 0"""
    for _ in range(20):
        a.sendto(b"", (peer, 0))
        data, sender = a.recvfrom(100)
        assert sender == (peer, 0), sender


def sizes(a, b, peer):
    for n in [1, 2, 100, 4095, 4096, 4097, 65536, 200001, 1 << 20]:
        message = os.urandom(n)
        a.sendto(message, (peer, b.getsockname()[1]))
        data, sender = b.recvfrom(2 << 20)
        assert data == message, f"{n} bytes differ"
        b.sendto(data[::-1], sender)
        assert a.recv(2 << 20) == message[::-1], f"{n} bytes back differ"


def stream(a, b, count):
    """Each of the two sends COUNT messages; they come once, in order, whole"""
    a.setblocking(False)
    b.setblocking(False)
    ends = {s.fileno(): [s, other, 0, 0] for s, other in ((a, b), (b, a))}
    base = os.urandom(40000)

    def message(i):
        return struct.pack("I", i) + base[: i * 7919 % 33000]

    poll = select.poll()
    for fd in ends:
        poll.register(fd, select.POLLIN | select.POLLOUT)
    while any(e[2] < count or e[3] < count for e in ends.values()):
        ready = poll.poll(25000)
        assert ready, f"nothing happens: {[e[2:] for e in ends.values()]}"
        for fd, event in ready:
            e = ends[fd]
            if event & select.POLLIN:
                try:
                    data = e[0].recv(1 << 20)
                except BlockingIOError:
                    continue
                assert data == message(e[3]), f"message {e[3]} differs"
                e[3] += 1
            if event & select.POLLOUT and e[2] < count:
                try:
                    e[0].sendto(message(e[2]), e[1].getsockname())
                    e[2] += 1
                except (BlockingIOError, OSError) as error:
                    assert error.errno in (11, 105), error
                if e[2] == count:
                    poll.modify(fd, select.POLLIN)


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


def rdma(a, b, peer):
    for n in (4096, 65536, 1 << 20):
        here, there = mmap.mmap(-1, n), mmap.mmap(-1, n)
        for write in (True, False):
            source, sink = (here, there) if write else (there, here)
            source[:] = os.urandom(n)
            sink[:] = bytes(n)
            offer(b, there, n, a.getsockname())
            cookie = offered(a)
            rdma_message(a, (peer, b.getsockname()[1]), cookie, here, n, write, n + write)
            b.recv(100)
            status_of(a, n + write)
            assert source[:] == sink[:], f"RDMA {'WRITE' if write else 'READ'} of {n} bytes differs"


def main():
    address, peer, what = sys.argv[1:4]
    a, b = rds(address, 4000), rds(peer, 4001)
    if what == "ping":
        ping(a, b, peer)
    elif what == "sizes":
        sizes(a, b, peer)
    elif what == "stream":
        stream(a, b, int(sys.argv[4]))
    else:
        rdma(a, b, peer)


main()
