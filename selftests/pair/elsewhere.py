#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""elsewhere.py serve ADDRESS PORT KEYFILE : run what comes, until an empty command does.

elsewhere.py run ADDRESS PORT KEYFILE [COMMAND...] : have it run there, as if it ran here: with this process's environment,
working directory, input and outputs; signals go there, and the exit status comes back. When this process is killed, or its
connection ends in another way, what it has started is killed with SIGKILL, too. (ssh leaves it running.) Background processes
that have made a session of their own stay.

For two machines of a test, on a link of theirs: nothing is encrypted, and whoever has the key's file is root.

It is started for every command, on machines that are emulated: so it does without modules that take long to load (json, hmac).
"""

import os
import select
import signal
import socket
import struct
import sys

# Frames: a letter, the length of what follows, and that.  To the server: the command, input, the end of the input, a signal
COMMAND, INPUT, END, SIGNAL = b"c", b"i", b"e", b"s"
# To the client: the outputs, the exit status
OUTPUT, ERRORS, STATUS = b"o", b"x", b"q"
HEADER = struct.Struct("!cI")
PIECE = 65536
# Of input that the command does not read, so much is kept for it
MOST_INPUT = 1 << 20
# What is left of its output when the command has ended: background processes may keep the pipes open for ever
LINGER_MS = 300


class Frames:
    """Frames over a connection."""

    def __init__(self, connection):
        self.connection = connection
        self.rest = b""

    def send(self, kind, data=b""):
        """Send one frame."""
        self.connection.sendall(HEADER.pack(kind, len(data)) + data)

    def receive(self):
        """Wait for data; return the frames that are complete now, or None when the connection has ended."""
        data = self.connection.recv(PIECE)
        if not data:
            return None
        self.rest += data
        frames = []
        while len(self.rest) >= HEADER.size:
            kind, length = HEADER.unpack_from(self.rest)
            end = HEADER.size + length
            if len(self.rest) < end:
                break
            frames.append((kind, self.rest[HEADER.size : end]))
            self.rest = self.rest[end:]
        return frames

    def finish(self, status):
        """Send the exit status, and wait until the client has it: with input unread an end would take it away from him."""
        self.send(STATUS, struct.pack("!i", status))
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.recv(PIECE):
            pass


def start(folder, command, environment):
    """Start a command in a session of its own; return its process, and our ends of its input and its two outputs."""
    pipes = [os.pipe() for _ in range(3)]
    process = os.fork()
    if not process:
        try:
            os.setsid()
            for number, pipe in enumerate(pipes):
                os.dup2(pipe[0 if number == 0 else 1], number)
            os.closerange(3, 100)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.chdir(folder if os.path.isdir(folder) else "/")
            os.execvpe(command[0], command, environment)
        except OSError as error:
            os.write(2, command[0] + f": {error.strerror}\n".encode())
        finally:
            os._exit(127)
    for number, pipe in enumerate(pipes):
        os.close(pipe[0 if number == 0 else 1])
    return process, pipes[0][1], pipes[1][0], pipes[2][0]


def packed(key, command):
    """Return what the frame of a command has: strings with zeros between."""
    environment = [name + b"=" + value for name, value in os.environb.items()]
    return b"\0".join([key, os.getcwdb(), str(len(command)).encode(), *map(os.fsencode, command), *environment])


def unpacked(data):
    """Return the key, the working directory, the command and the environment in such a frame."""
    key, folder, number, *rest = data.split(b"\0")
    number = int(number)
    return key, folder, rest[:number], dict(variable.split(b"=", 1) for variable in rest[number:])


def kill_session(leader):
    """Kill all processes of a session."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                if int(file.read().rpartition(")")[2].split()[3]) == leader:
                    os.kill(int(name), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass


class Session:
    """One command on the server, and the connection of who has asked for it."""

    def __init__(self, frames, *what):
        self.frames = frames
        self.process, self.input, self.output, self.errors = start(*what)
        os.set_blocking(self.input, False)
        self.pending, self.at_end = b"", False
        self.status = None

    def take(self, kind, data):
        """Do what one frame of the client's says."""
        if kind == INPUT:
            self.pending += data
        elif kind == END:
            self.at_end = True
        elif kind == SIGNAL:
            try:
                os.killpg(self.process, data[0])
            except ProcessLookupError:
                pass

    def feed(self):
        """Write to the command's input what there is, as far as it is read."""
        if self.input < 0:
            self.pending = b""
            return
        try:
            while self.pending:
                self.pending = self.pending[os.write(self.input, self.pending) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending, self.at_end = b"", True
        if self.at_end:
            os.close(self.input)
            self.input = -1

    def drain(self, fd):
        """Pass on what the command has written; return False at its end."""
        data = os.read(fd, PIECE)
        if data:
            self.frames.send(OUTPUT if fd == self.output else ERRORS, data)
        return bool(data)

    def run(self):
        """Return when the command has ended, or the connection."""
        poll = select.poll()
        ended = os.pidfd_open(self.process)
        outputs = {self.output, self.errors}
        for fd in outputs | {ended}:
            poll.register(fd, select.POLLIN)
        connection = self.frames.connection.fileno()
        while self.status is None or outputs:
            self.feed()
            poll.register(connection, select.POLLIN if len(self.pending) < MOST_INPUT else 0)
            if self.pending:
                poll.register(self.input, select.POLLOUT)
            ready = poll.poll(None if self.status is None else LINGER_MS)
            if self.pending:
                poll.unregister(self.input)
            if not ready:
                break
            for fd, _ in ready:
                if fd == connection:
                    frames = self.frames.receive()
                    if frames is None:
                        return False
                    for frame in frames:
                        self.take(*frame)
                elif fd == ended:
                    poll.unregister(fd)
                    self.status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
                elif fd in outputs and not self.drain(fd):
                    poll.unregister(fd)
                    outputs.discard(fd)
        self.frames.finish(self.status)
        return True


def session(connection, key, server):
    """Serve one client."""
    frames = Frames(connection)
    received = []
    while not received:
        received = frames.receive()
        if received is None:
            return
    theirs, *what = unpacked(received[0][1])
    if theirs != key:
        return
    if not what[1]:
        os.kill(server, signal.SIGTERM)
        frames.finish(0)
        return
    running = Session(frames, *what)
    try:
        for frame in received[1:]:
            running.take(*frame)
        if running.run():
            return
    except OSError:
        pass
    kill_session(running.process)


def serve(address, port, key):
    """See above."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.create_server((address, port), backlog=128)
    server = os.getpid()
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                session(connection, key, server)
            finally:
                os._exit(0)
        connection.close()


def write_all(fd, data):
    """Write all of it."""
    while data:
        data = data[os.write(fd, data) :]


def pass_input(frames):
    """Send a piece of our input; return False at its end."""
    try:
        data = os.read(0, PIECE)
    except OSError:
        data = b""
    frames.send(INPUT if data else END, data)
    return bool(data)


def run(address, port, key, command):
    """See above; return the exit status, as a shell has it."""
    signals, alarm = socket.socketpair()
    alarm.setblocking(False)
    signal.set_wakeup_fd(alarm.fileno())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    connection = socket.create_connection((address, port), timeout=30)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    frames = Frames(connection)
    frames.send(COMMAND, packed(key, command))
    poll = select.poll()
    for fd in (0, connection.fileno(), signals.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == signals.fileno():
                frames.send(SIGNAL, signals.recv(1))
            elif fd == 0:
                if not pass_input(frames):
                    poll.unregister(0)
            else:
                received = frames.receive()
                if received is None:
                    os.write(2, f"{command[:1]}: the connection to the other machine has ended\n".encode())
                    return 255
                for kind, data in received:
                    if kind == STATUS:
                        status = struct.unpack("!i", data)[0]
                        return status if status >= 0 else 128 - status
                    write_all(1 if kind == OUTPUT else 2, data)


def main():
    """See above."""
    what, address, port, name = sys.argv[1:5]
    with open(name, "rb") as file:
        key = file.read().strip()
    if what == "serve":
        serve(address, int(port), key)
    return run(address, int(port), key, sys.argv[5:])


try:
    sys.exit(main())
except BrokenPipeError:
    os._exit(128 + signal.SIGPIPE)
except OSError as problem:
    os.write(2, f"elsewhere.py: {problem}\n".encode())
    os._exit(255)
