#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""guides_run.py GUIDE HOST=NAMESPACE... : do what a guide (Markdown) tells its reader, in the order of the guide.
guides_run.py --none PAGE... : pages that are no guides, and so must have no commands.

Commands are in fences that begin with ```console. In such a fence

    host1# COMMAND      is run by root on that host, in a shell that stays until the guide ends
    host1$ COMMAND      by a user without rights, who may lock 8 MiB
    both# COMMAND       on host1 and then on host2
    # COMMAND           on host1, as "$ COMMAND" is

A line that ends in a backslash goes on in the next one. Every command has to succeed. What stands below it is what it
prints, if anything stands there: ... in a line is any text, a line of ... any lines, and how many spaces there are
does not matter. A last line ^C: it runs for three seconds and is interrupted. A command that ends in & is a server:
the next one waits until it listens (or two seconds, if it says something), it must not fail, and at the end of the fence what still
runs is ended.

    ```console fails              the last command has to fail
    ```console not-run: REASON    not run here; counted, and told with the reason
    ```console wants: NAME...     not run where one of these programs or files (/...) is missing; with NOTHING_LACKS=1 that
                                  is wrong

No other fence and no indented block is allowed, so that no command is left out, but ```text for what is no command.

The RDMA devices of the two hosts, which are namespaces of one kernel, cannot have one name: what is called sroce0 or
rxe0 in the guide is sroce9 or rxe9 on host2. An empty namespace is the machine itself.

Prints "ok: ...", "WRONG: ..." and "skip: ... [REASON" for each command, and last how many were wrong.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

SLOW = int(os.environ.get("SLOW", "1"))
NOTHING_LACKS = os.environ.get("NOTHING_LACKS") == "1"
TOOLS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tools/host/")
PROMPT = re.compile(r"([a-z][a-z0-9]*)?([#$]) (.+)")
CHANGES = re.compile(r"\b(ip|rdma|sroce-netdev|nsenter)\b")
# What perftest says, after all of its traffic, where it cannot print a report: other work has disturbed its clock
NO_CLOCK = re.compile(r"^Correlation coefficient r\^2: \S+ < 0\.9$", re.MULTILINE)


@dataclass
class Command:
    """One command of a guide, and what the guide says it prints."""
    line: int
    host: str
    prompt: str
    text: str
    output: list = field(default_factory=list)
    server: bool = False


@dataclass
class Fence:
    """The commands of one fence."""
    line: int
    fails: bool = False
    not_run: str = ""
    wants: list = field(default_factory=list)
    commands: list = field(default_factory=list)


# --- reading a guide -------------------------------------------------------------------------------------------


def parse_fence(number, info, lines):
    """A fence, of its info string and the lines in it."""
    fence = Fence(number)
    if info == "fails":
        fence.fails = True
    elif info.startswith("not-run: "):
        fence.not_run = info[len("not-run: "):]
    elif info.startswith("wants: "):
        fence.wants = info.split()[1:]
    elif info:
        raise ValueError(f"line {number}: 'console {info}' is not 'console', 'console fails', 'console not-run: REASON' or "
                         "'console wants: NAME...'")
    more = False
    for offset, line in enumerate(lines, 1):
        found = PROMPT.fullmatch(line)
        if more:
            fence.commands[-1].text += "\n" + line
            more = line.endswith("\\")
        elif found:
            fence.commands.append(Command(number + offset, found[1] or "host1", found[2], found[3]))
            more = line.endswith("\\")
        elif not fence.commands:
            raise ValueError(f"line {number + offset}: a fence begins with a command")
        else:
            fence.commands[-1].output.append(line)
    for command in fence.commands:
        command.server = re.search(r"[^&]&$", command.text) is not None
    if not fence.commands:
        raise ValueError(f"line {number}: there is no command in this fence")
    return fence


def parse(text):
    """All fences of a guide."""
    fences, lines, number, blank, item = [], text.split("\n"), 0, True, 0
    while number < len(lines):
        line = lines[number]
        number += 1
        start = re.fullmatch(r"( *)```(\S*) ?(.*)", line)
        if start:
            indent, inside, begin = len(start[1]), [], number
            while lines[number].strip() != "```":
                inside.append(lines[number][indent:])
                number += 1
            number += 1
            if start[2] == "console":
                fences.append(parse_fence(begin, start[3].strip(), inside))
            elif start[2] != "text":
                raise ValueError(f"line {begin}: a fence is ```console or ```text")
            continue
        # What belongs to an item of a list is indented, too
        found = re.match(r"( *)(?:[-*]|\d+\.) +", line)
        if found:
            item = len(found[0])
        elif line and not line.startswith(" "):
            item = 0
        if blank and line.startswith(" " * (item + 4)) and line.strip():
            raise ValueError(f"line {number}: an indented block, and no fence")
        blank = not line.strip()
    return fences


# --- what is printed -------------------------------------------------------------------------------------------


def squeezed(line):
    """A line with no more than one space at a time."""
    return re.sub(r"\s+", " ", line).strip()


def as_told(expected, said):
    """Does output look as the guide says?"""
    pattern = ""
    for line in map(squeezed, expected):
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split("..."))) + "\n"
    lines = [squeezed(line) for line in said.strip().split("\n")]
    return re.fullmatch(pattern, "\n".join(lines) + "\n") is not None


# --- hosts -----------------------------------------------------------------------------------------------------

# A host has a name, and files of its own where the guides write; what shows RDMA devices is of its network namespace.
HOST_SETUP = r"""
set -e
hostname "$name"
if [ -n "$namespace" ]; then
	! mountpoint -q /sys || umount -l /sys
	mount -t sysfs sysfs /sys
	for kind in configfs:config debugfs:debug tracefs:tracing; do
		mount -t "${kind%:*}" none "/sys/kernel/${kind#*:}" || echo "no ${kind%:*}"
	done
fi
mount --bind "$hosts" /etc/hosts
mkdir -p /etc/rdma /etc/modprobe.d
mount -t tmpfs tmpfs /etc/rdma
mount -t tmpfs tmpfs /etc/modprobe.d
cp "$tools/sroce.conf" /etc/rdma/
"""
ROOT = "cd / && exec bash --norc --noprofile"
USER = "cd / && exec prlimit --memlock=8388608 setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all bash --norc --noprofile"


class Shell:
    """A shell on a host: commands come in one after another, their output goes to files."""

    def __init__(self, folder, enter, last):
        self.folder, self.number = folder, 0
        path = f"{TOOLS}:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {"PATH": path, "HOME": "/root", "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(enter + ["bash", "-c", last], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, start_new_session=True)
        self.ask("echo ready")

    def ask(self, text):
        """The line that the shell itself answers with."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def run(self, text, seconds):
        """Run a command: its status, the number of the process that it left in the background, the file of its output."""
        self.number += 1
        script, out = (os.path.join(self.folder, f"{self.process.pid}.{self.number}.{what}") for what in ("sh", "out"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        with open(out, "w", encoding="utf-8"):
            os.chmod(out, 0o666)
        signal.alarm(seconds * SLOW)
        try:
            answer = self.ask(f". {script} >{out} 2>&1 </dev/null; echo $? $!").split()
        finally:
            signal.alarm(0)
        if not answer:
            raise TimeoutError("the shell has ended")
        return int(answer[0]), int(answer[1]) if len(answer) > 1 else 0, out

    def end_of(self, pid):
        """The status of a process in the background, which has ended."""
        return int(self.ask(f"wait {pid}; echo $?"))

    def close(self):
        """End it, with all that it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Host:
    """A host of the guide, which is a network namespace here."""

    def __init__(self, name, namespace, folder, hosts):
        self.name, self.folder, self.shells = name, folder, {}
        enter = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
        self.first = Shell(folder, enter + ["unshare", "--mount", "--uts"], ROOT)
        given = f"name={name} namespace={namespace} hosts={hosts} tools={TOOLS}"
        status, _, out = self.first.run(f"({given}\n{HOST_SETUP})", 20)
        if status:
            raise RuntimeError(f"{name} cannot be made: {read(out)}")
        self.shells["#"] = self.first

    def shell(self, prompt):
        """The shell of root or of a user."""
        if prompt not in self.shells:
            self.shells[prompt] = Shell(self.folder, ["nsenter", f"--target={self.first.process.pid}", "--root", "--net", "--mount", "--uts"], USER)
        return self.shells[prompt]

    def names(self, text, back=False):
        """Names of RDMA devices as they are here; back: as the guide has them."""
        if self.name != "host2":
            return text
        return re.sub(r"\b(sroce|rxe)%d\b" % (9 if back else 0), r"\g<1>%d" % (0 if back else 9), text)

    def close(self):
        """End its shells."""
        for shell in self.shells.values():
            shell.close()


def family(pid):
    """A process, and those that it has started."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(entry)] = int(read(f"/proc/{entry}/stat").rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def listens(pid):
    """Has this process a TCP socket or an id of rdma_cm that waits for somebody?"""
    try:
        sockets = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        lines = (read(f"/proc/{pid}/net/tcp") + read(f"/proc/{pid}/net/tcp6")).split("\n")
    except OSError:
        return False
    waiting = {"socket:[" + line.split()[9] + "]" for line in lines if line.split()[3:4] == ["0A"]}
    ids = subprocess.run(["nsenter", f"--target={pid}", "--net", "rdma", "resource", "show", "cm_id"],
                         capture_output=True, text=True, check=False).stdout
    return bool(waiting.intersection(sockets)) or any("LISTEN" in line and f" pid {pid} " in line for line in ids.split("\n"))


def read(path):
    """All of a file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


# --- running ---------------------------------------------------------------------------------------------------


class Runner:
    """Runs the fences of one guide."""

    def __init__(self, hosts):
        # no_clock: a command of this fence had to be left out, whose server then ends with an error
        self.hosts, self.wrong, self.no_clock = hosts, 0, False

    def tell(self, verdict, command, host="", more=""):
        """One result."""
        self.wrong += verdict == "WRONG"
        text = command.text.replace("\\\n", " ")
        print(f"{verdict}: line {command.line}: {host or command.host}{command.prompt} {squeezed(text)}{more}", flush=True)

    def judge(self, command, host, status, said, fails=False):
        """One result, of a command that has ended."""
        expected = [line for line in command.output if line.strip() and line != "^C"]
        said = host.names(said, back=True)
        no_clock = bool(NO_CLOCK.search(said))
        self.no_clock |= bool(status) and no_clock
        if status and (no_clock or (self.no_clock and command.server)):
            self.tell("skip", command, host.name, " [perftest cannot measure the clock of this machine, which is busy")
            return
        wrong = []
        if (status != 0) != fails:
            wrong.append(f"status {status}")
        if expected and not as_told(expected, said):
            wrong.append("the guide says that it prints something else")
        self.tell("WRONG" if wrong else "ok", command, host.name)
        for line in wrong:
            print("# " + line)
        if wrong:
            for line in said.strip().split("\n")[-30:]:
                print("# | " + line)

    def start(self, command, host):
        """Start a server; it is ready when this returns."""
        shell = host.shell(command.prompt)
        _, pid, out = shell.run(host.names(command.text), 60)
        start = time.monotonic()
        while os.path.exists(f"/proc/{pid}") and not any(map(listens, family(pid))):
            if time.monotonic() - start > (2 if read(out) else 10) * SLOW:
                break
            time.sleep(0.1)
        time.sleep(0.2)
        return command, host, shell, pid, out

    def end(self, command, host, shell, pid, out):
        """A server has done what it was there for."""
        def running():
            try:
                return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "Z"
            except OSError:
                return False
        ended = False
        for sign, seconds in ((None, 3 * SLOW), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            if sign:
                ended = True
                os.kill(pid, sign)
            until = time.monotonic() + seconds
            while running() and time.monotonic() < until:
                time.sleep(0.1)
            if not running():
                break
        status = shell.end_of(pid)
        self.judge(command, host, 0 if ended else status, read(out))

    def leave_out(self, fence, reason, verdict="skip"):
        """The commands of a fence are not run."""
        for command in fence.commands:
            self.tell(verdict, command, more=f" [{reason}")

    def lacks(self, fence):
        """What a fence wants and is not here; it is left out then."""
        missing = [name for name in fence.wants if not (os.path.exists(name) if name.startswith("/") else shutil.which(name))]
        if missing:
            self.leave_out(fence, f"there is no {', no '.join(missing)} here", "WRONG" if NOTHING_LACKS else "skip")
        return bool(missing)

    def run(self, fence):
        """Run the commands of a fence."""
        servers = []
        self.no_clock = False
        for command in fence.commands:
            for name in ["host1", "host2"] if command.host == "both" else [command.host]:
                host = self.hosts[name]
                if command.server:
                    servers.append(self.start(command, host))
                    continue
                text, interrupted = host.names(command.text), command.output[-1:] == ["^C"]
                status, _, out = host.shell(command.prompt).run(("timeout -s INT 3 " if interrupted else "") + text, 60)
                if interrupted and status in (124, 130):
                    status = 0
                self.judge(command, host, status, read(out), fence.fails and command is fence.commands[-1])
                if CHANGES.search(text):
                    # No reader is as fast: addresses become GIDs meanwhile
                    time.sleep(0.5 * SLOW)
        for server in servers:
            self.end(*server)


def hosts_file(folder):
    """Names of the hosts, as the guides use them."""
    path = os.path.join(folder, "hosts")
    with open(path, "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost\n::1 localhost\n192.0.2.1 host1\n192.0.2.2 host2\n2001:db8::1 host1\n2001:db8::2 host2\n")
    return path


def timed_out(*_):
    """A command does not come to its end."""
    raise TimeoutError("it takes too long")


def run(fences, namespaces, folder):
    """Run all fences of a guide: how many commands were wrong."""
    hosts = {}
    runner = Runner(hosts)
    path = hosts_file(folder)
    try:
        for name, namespace in namespaces.items():
            hosts[name] = Host(name, namespace, folder, path)
        for fence in fences:
            if fence.not_run:
                runner.leave_out(fence, fence.not_run)
            if fence.not_run or runner.lacks(fence):
                continue
            try:
                runner.run(fence)
            except (KeyError, TimeoutError, OSError) as error:
                print(f"WRONG: line {fence.line}: the rest of this fence and of the guide is not run ({error!r})")
                runner.wrong += 1
                break
    finally:
        for host in hosts.values():
            host.close()
    return runner.wrong


def none(pages):
    """Which of these pages have commands, or blocks that may be some: how many."""
    wrong = 0
    for path in pages:
        name, why = os.path.relpath(path, os.path.join(TOOLS, "../..")), ""
        try:
            fences = parse(read(path))
            why = f"there are commands in line {fences[0].line}, which nobody runs" if fences else ""
        except (ValueError, IndexError) as error:
            why = str(error)
        wrong += bool(why)
        print(f"WRONG: {name}: {why}" if why else f"ok: {name}")
    print(f"# {wrong} wrong")
    return wrong > 0


def main():
    """Run a guide."""
    if sys.argv[1] == "--none":
        return none(sys.argv[2:])
    path, namespaces = sys.argv[1], dict(word.split("=", 1) for word in sys.argv[2:])
    signal.signal(signal.SIGALRM, timed_out)
    try:
        fences = parse(read(path))
    except (ValueError, IndexError) as error:
        print(f"WRONG: {error}\n# 1 wrong")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        wrong = run(fences, namespaces, folder)
    print(f"# {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
