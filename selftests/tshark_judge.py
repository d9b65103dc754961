# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""tshark_judge.py CASE FILE [NAME=VALUE]... : does what tshark prints of a capture fit together, and with what else is
known of the traffic?

FILE has a line for each frame, as tshark -T fields prints the fields that --fields names. CASE is that of a method case_... below.
Values:
    mtu=N             the path MTU of the connections
    qpns=N,N,...      the queue pairs that the kernel has told of meanwhile
    packets=N         how many packets the device has counted meanwhile
Prints what program_verdicts() of lib.sh takes.
"""
import sys
from collections import Counter, defaultdict, namedtuple

# What tshark calls the fields of a frame, and what they are called here
FIELDS = {
    "src": "ip.src", "src6": "ipv6.src", "length": "udp.length", "ecn": "ip.dsfield.ecn", "opcode": "infiniband.bth.opcode",
    "pad": "infiniband.bth.padcnt", "qpn": "infiniband.bth.destqp", "psn": "infiniband.bth.psn",
    "syndrome": "infiniband.aeth.syndrome.opcode", "msn": "infiniband.aeth.msn", "reth": "infiniband.reth.dmalen",
    "immediate": "infiniband.immdt", "rkey": "infiniband.ieth", "swap": "infiniband.atomiceth.swapdt",
    "atomic": "infiniband.atomicacketh.origremdt", "srcqp": "infiniband.deth.srcqp", "crc": "infiniband.invariant.crc",
    "reqqp": "infiniband.cm.req.localqpn", "reqpsn": "infiniband.cm.req.startpsn",
    "repqp": "infiniband.cm.rep.localqpn", "reppsn": "infiniband.cm.rep.startpsn", "info": "_ws.col.Info",
}
Frame = namedtuple("Frame", ["number", *FIELDS])
HALF, PSNS = 1 << 23, 1 << 24

# What stands for the operations among the low five bits of an opcode
SEND, WRITE = (0, 1, 2, 3, 4, 5, 22, 23), (6, 7, 8, 9, 10, 11)
READ, READ_RESPONSE, ACK, ATOMIC_ACK, ATOMIC = 12, (13, 14, 15, 16), 17, 18, (19, 20)
FIRST_OR_MIDDLE, LAST_OR_ONLY = (0, 1, 6, 7, 13, 14), (2, 3, 4, 5, 8, 9, 10, 11, 15, 16, 22, 23)
IMMEDIATE, INVALIDATE, WITH_AETH = (3, 5, 9, 11), (22, 23), (13, 15, 16, 17, 18)
RESPONSES = (*READ_RESPONSE, ACK, ATOMIC_ACK)
# Bytes of headers behind the BTH
EXTENSIONS = (("syndrome", 4), ("reth", 16), ("immediate", 4), ("rkey", 4), ("swap", 28), ("atomic", 8), ("srcqp", 8))
UC, UD_SEND, UD_SEND_IMMEDIATE, CNP, XRC = 0x20, 0x64, 0x65, 0x81, 0xa0
# Attributes of the connection manager's messages, as tshark names them
CM = ("ConnectRequest", "ConnectReply", "ReadyToUse", "DisconnectRequest", "DisconnectReply")


def number(text):
    """A number as tshark prints it, decimal or hexadecimal; None if the frame has none."""
    return int(text, 0) if text else None


def load(path):
    """All frames."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line_number, line in enumerate(file, 1):
            values = dict(zip(FIELDS, line.rstrip("\n").split("\t")))
            text = {name: values.get(name, "") for name in ("src", "src6", "immediate", "rkey", "info")}
            numbers = {name: number(value) for name, value in values.items() if name not in text}
            yield Frame(**{"number": line_number, **numbers, **text})


def step(psn, other):
    """psn - other, of numbers that wrap."""
    return (psn - other + HALF) % PSNS - HALF


def payload(frame):
    """Its bytes: what is neither header, padding nor ICRC."""
    return frame.length - 8 - 12 - 4 - frame.pad - sum(size for name, size in EXTENSIONS if getattr(frame, name) not in (None, ""))


class Judge:
    """The frames of a capture, and what is right of them."""

    def __init__(self, frames, values):
        self.frames, self.values, self.wrong = frames, values, 0
        self.mtu = int(values.get("mtu", 0))
        # requests that were sent again: a slow machine may have some
        self.again = 0
        self.flows = defaultdict(list)
        for one in frames:
            self.flows[one.src or one.src6, one.qpn].append(one)

    def expect(self, name, good, seen=""):
        """A verdict."""
        self.wrong += not good
        print(f"{'ok' if good else 'WRONG'}: {name}")
        if seen:
            print(f"  {seen}")

    # --- every capture --------------------------------------------------------------------------------------

    def decoded(self, trains=False):
        """tshark knows each frame as RoCE, with an opcode that has a name and an ICRC. (tshark 4.4 has no name
        for CNPs and knows no headers of XRC; where another packet follows a short one in a train the ICRC is not told.)"""
        strange = [one.number for one in self.frames if one.opcode is None or
                   (one.opcode != CNP and one.opcode < XRC and ("Unknown" in one.info or (one.crc is None and not trains)))]
        self.expect("every frame is RoCE, with an opcode that tshark knows and an ICRC", self.frames and not strange,
                    f"of {len(self.frames)} frames not {strange[:10]}")
        malformed = [one.number for one in self.frames if "Malformed" in one.info]
        self.expect("no frame is malformed", not malformed, f"frames {malformed[:10]}")

    def opcodes(self, wanted, service=0):
        """All of these are there."""
        seen = Counter(one.opcode for one in self.frames)
        missing = [service + opcode for opcode in wanted if not seen[service + opcode]]
        self.expect("opcodes", not missing, f"missing: {missing}; seen: {dict(sorted(seen.items()))}")

    def queue_pairs(self):
        """What packets are for are the host's queue pairs; the kernel was asked while there was traffic."""
        told = {int(text) for text in self.values["qpns"].split(",") if text}
        seen = {one.qpn for one in self.frames if one.qpn > 1}
        self.expect("queue pair numbers are those of the kernel", seen and seen <= told,
                    f"{sorted(seen - told)} are not among {sorted(told)}")

    # --- reliable connections -------------------------------------------------------------------------------

    def headers(self):
        """Each opcode has the headers that it ought to have."""
        for name, field, opcodes in (("AETH", "syndrome", WITH_AETH), ("immediate data", "immediate", IMMEDIATE),
                                     ("an R_Key to invalidate", "rkey", INVALIDATE), ("AtomicETH", "swap", ATOMIC),
                                     ("AtomicAckETH", "atomic", (ATOMIC_ACK,)), ("RETH", "reth", (6, 10, 11, READ))):
            strange = [one.number for one in self.frames
                       if (one.opcode & 31 in opcodes) != (getattr(one, field) not in (None, ""))]
            self.expect(f"{name} where it belongs, and nowhere else", not strange, f"frames {strange[:10]}")
        naks = [one.number for one in self.frames if one.syndrome]
        self.expect("every AETH is an ACK: nothing was lost", not naks, f"frames {naks[:10]}")

    def lengths(self):
        """What a RETH announces is what the packets carry."""
        messages = wrong = 0
        for frames in self.flows.values():
            left = None
            for one in frames:
                opcode = one.opcode & 31
                if opcode not in WRITE:
                    continue
                if one.reth is not None:
                    left, messages = one.reth, messages + 1
                if left is None:
                    continue  # it began before the capture
                left -= payload(one)
                if opcode in LAST_OR_ONLY:
                    wrong += left != 0
                    left = None
        self.expect("WRITEs are as long as their RETH says", messages and not wrong, f"{wrong} of {messages} are not")
        full = [one.number for one in self.frames if one.opcode & 31 in FIRST_OR_MIDDLE and payload(one) != self.mtu]
        self.expect("packets with more behind them are full", not full, f"frames {full[:10]}")

    def requests_in_order(self):
        """Each request has the PSN behind the last one's; a READ takes as many as its answer has packets."""
        gaps, again, total = [], 0, 0
        for frames in self.flows.values():
            due = None
            for one in (one for one in frames if one.opcode & 31 not in RESPONSES):
                total += 1
                ahead = 0 if due is None else step(one.psn, due)
                if ahead > 0:
                    gaps.append(one.number)
                elif ahead < 0:
                    again += 1
                    continue
                taken = max(1, -(-one.reth // self.mtu)) if one.opcode & 31 == READ else 1
                due = (one.psn + taken) % PSNS
        self.expect("requests: PSNs without a gap", total and not gaps, f"before frames {gaps[:10]}")
        self.expect("and next to none twice", again * 100 <= total, f"{again} of {total}")
        self.again = again

    def responses_in_order(self):
        """PSNs and MSNs of responses do not go back, but for what was sent again."""
        back, total = 0, 0
        for frames in self.flows.values():
            responses = [one for one in frames if one.opcode & 31 in RESPONSES]
            total += len(responses)
            back += sum(step(b.psn, a.psn) < 0 for a, b in zip(responses, responses[1:]))
            counted = [one for one in responses if one.msn is not None]
            back += sum(step(b.msn, a.msn) < 0 for a, b in zip(counted, counted[1:]))
        self.expect("responses: PSNs and MSNs go forward", total and back <= 2 * self.again, f"{back} of {total} do not")

    def reads(self):
        """A READ's answer begins with its PSN, and is as long as the READ has asked for."""
        # by the PSN of the request: a queue pair may have the same of both ends, so by direction, too
        asked = {}
        answers, wrong = 0, []
        for one in self.frames:
            opcode = one.opcode & 31
            side = one.src or one.src6
            if opcode == READ:
                asked.setdefault((side, one.psn), set()).add(one.reth)
        for frames in self.flows.values():
            begun = length = None
            for one in (one for one in frames if one.opcode & 31 in READ_RESPONSE):
                if one.opcode & 31 in (13, 16):
                    begun, length = one, 0
                if begun is None:
                    continue
                if step(one.psn, begun.psn) * self.mtu != length:
                    wrong.append(one.number)
                length += payload(one)
                if one.opcode & 31 in LAST_OR_ONLY:
                    answers += 1
                    side = begun.src or begun.src6
                    wanted = set().union(*(lengths for (asker, psn), lengths in asked.items() if asker != side and psn == begun.psn))
                    if length not in wanted:
                        wrong.append(begun.number)
                    begun = None
        all_answered = answers >= sum(one.opcode & 31 == READ for one in self.frames) - self.again
        self.expect("READs are answered with what they have asked for", answers and all_answered and not wrong,
                    f"{answers} answers, not {wrong[:10]}")

    def single(self):
        """As many frames as packets, none with more than one in it."""
        counted = int(self.values["packets"])
        self.expect("a frame for each packet that was counted", len(self.frames) == counted,
                    f"{len(self.frames)} frames, {counted} packets")
        long = [one.number for one in self.frames if payload(one) > self.mtu]
        self.expect("no frame is longer than the path MTU", not long, f"frames {long[:10]}")

    def trains(self):
        """Fewer frames than packets, as the stack has not cut them."""
        counted = int(self.values["packets"])
        long = [one.number for one in self.frames if payload(one) > self.mtu]
        self.expect("trains are frames of more than the path MTU", long and len(self.frames) < counted,
                    f"{len(self.frames)} frames for {counted} packets, {len(long)} of them long")

    # --- the cases --------------------------------------------------------------------------------------------

    def case_single(self):
        """Reliable connections, each packet by itself."""
        self.opcodes((*SEND, *WRITE, READ, *READ_RESPONSE, ACK, ATOMIC_ACK, *ATOMIC))
        for check in (self.single, self.queue_pairs, self.headers, self.lengths, self.requests_in_order,
                      self.responses_in_order, self.reads):
            check()

    def case_trains(self):
        """The same with trains: of each frame tshark decodes the first packet."""
        self.trains()
        self.queue_pairs()

    def case_uc(self):
        """Unreliable connections."""
        self.opcodes((6, 7, 8), UC)
        self.lengths()
        self.requests_in_order()

    def case_xrc(self):
        """XRC: SENDs, and their ACKs."""
        self.opcodes((0, 1, 2, ACK), XRC)

    def case_ud(self):
        """Datagrams, with who sends them."""
        self.opcodes((UD_SEND, UD_SEND_IMMEDIATE))
        strange = [one.number for one in self.frames if one.opcode in (UD_SEND, UD_SEND_IMMEDIATE) and one.srcqp is None]
        self.expect("each datagram has its DETH", not strange, f"frames {strange[:10]}")
        self.queue_pairs()

    def case_cm(self):
        """rdma_cm: the connection's messages are told by name, and what they agree on is what packets have."""
        said = Counter(one.info for one in self.frames if one.qpn == 1)
        missing = [name for name in CM if not any(name in text for text in said)]
        self.expect("messages of the connection manager", not missing, f"missing: {missing}; seen: {dict(said)}")
        for name in ("req", "rep"):
            message = next((one for one in self.frames if getattr(one, f"{name}qp") is not None), None)
            wanted = message and (getattr(message, f"{name}qp"), getattr(message, f"{name}psn"))
            first = next((one for one in self.frames if message and one.qpn == wanted[0] and one.opcode & 31 not in RESPONSES), None)
            self.expect(f"the queue pair and the PSN of its {name.upper()} are those of the first packet that its sender gets",
                        first and wanted == (first.qpn, first.psn), f"{wanted}, {first}")

    def case_cnp(self):
        """Marked packets, and notifications for them."""
        marked = [one for one in self.frames if one.ecn == 3]
        told = [one for one in self.frames if one.opcode == CNP]
        self.expect("marked packets are shown as such", marked, f"{len(marked)} of {len(self.frames)}")
        self.expect("there are notifications, to whoever sent what is marked",
                    told and {one.src for one in told}.isdisjoint(one.src for one in marked), f"{len(told)}")
        # the sender's queue pair has its own number in what it is sent as ACKs
        self.expect("for its queue pair", {one.qpn for one in told} <= {one.qpn for one in self.frames if one.opcode == ACK})


def main():
    """The command."""
    if sys.argv[1] == "--fields":
        print(" ".join(f"-e {name}" for name in FIELDS.values()))
        return 0
    values = dict(argument.split("=", 1) for argument in sys.argv[3:])
    judge = Judge(list(load(sys.argv[2])), values)
    judge.decoded(trains=sys.argv[1] == "trains")
    getattr(judge, f"case_{sys.argv[1]}")()
    print(f"{len(judge.frames)} frames, {judge.wrong} wrong")
    return judge.wrong > 0


if __name__ == "__main__":
    sys.exit(main())
