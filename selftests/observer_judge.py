# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""observer_judge.py CASE TRACE [NAME=VALUE]... : is what an observer has seen what the protocol says?

TRACE is what "observer" has printed. Host a is the requester. Values are how much counters of the two hosts have risen
meanwhile, as a.retrans_packets=3, and what the case says of itself:
    selective=1    both hosts hold what comes behind a gap
    holds=1        the receiver does, and nobody sends only a part again
    tries=1        host a sends only a part again, and finds out that the other end holds nothing
    slow=N         this machine is N times slower than usual
    asks=1         host a asks after a tail before the ACK timeout
    timeout_us=N   the ACK timeout, as asked for; at least so long a requester waits
    interval_us=N  the least time between two notifications; 0: each marked packet is told of
    judge=ab       whose behaviour is looked at: the other is another driver
Prints what program_verdicts() of lib.sh takes.
"""
import sys
from collections import namedtuple

LOST = ("drop", "corrupt")
Packet = namedtuple("Packet", "us side what place qpn psn bytes ackreq syndrome msn ecn action number")
HALF, PSNS = 1 << 23, 1 << 24


def behind(psn, other):
    """psn - other, of numbers that wrap."""
    return (psn - other + HALF) % PSNS - HALF


def load(path):
    """The packets, and what the last line says."""
    packets, end = [], {}
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "#":
                end = dict(word.split("=") for word in words[1:] if "=" in word) or end
                continue
            numbers = [None if word == "-" else int(word) for word in words[4:11]]
            packets.append(Packet(int(words[0]), words[1], words[2], words[3], *numbers, words[11], len(packets)))
    return packets, {name: int(value) for name, value in end.items()}


class Trace:
    """What was seen, and what is right of it."""

    def __init__(self, packets, end, values):
        self.packets, self.end, self.values, self.wrong = packets, end, values, 0
        self.judged = values.get("judge", "ab")
        self.requests = self.of("a", "request")
        self.responses = self.of("b", "response")

    def of(self, side, *whats):
        """The packets of some kinds from one side."""
        return [one for one in self.packets if one.side == side and one.what in whats]

    def value(self, name):
        """A number from the command line; 0 without."""
        return int(self.values.get(name, 0))

    def expect(self, side, name, good, seen=""):
        """A verdict about one side, unless that is another driver's."""
        if side not in self.judged:
            return
        self.wrong += not good
        print(f"ok: {name}" if good else f"WRONG: {name}\n  {seen}")

    def same(self, side, name, left, right):
        """Two numbers that have to be the same."""
        self.expect(side, f"{name} ({left})", left == right, f"{left} and {right}")

    def resent(self, packets):
        """Of these packets, those whose PSN was there before."""
        found, newest = [], None
        for one in packets:
            if newest is not None and behind(one.psn, newest) <= 0:
                found.append(one)
            else:
                newest = one.psn
        return found

    def psns_of(self, one):
        """How many PSNs a packet of the requester has; a READ request has those of its response."""
        return max(1, -(-one.bytes // 1024)) if one.what == "read" else 1

    def lost(self, packets):
        """Those that the receiver has not taken."""
        return [one for one in packets if one.action in LOST]

    def soon(self):
        """What does not wait for a timeout takes less than this, in microseconds: some tens of milliseconds on a machine
        whose processors have other work, and more where packets wait for those before them.
        """
        return min(60000 * int(self.values.get("slow", 1)) + 3 * self.round_trip(0.5), self.value("timeout_us"))

    def in_time(self, side, name, cause, effect):
        """One packet soon after another one that is the reason for it."""
        waited, bound = effect.us - cause.us, self.soon()
        self.expect(side, f"{name} ({waited} us of {bound:.0f})", 0 <= waited < bound)

    # --- what holds in every case ----------------------------------------------------------------------------

    def always(self):
        """The observer lost nothing; ACKs never go back; counters are what was seen."""
        self.expect("ab", "the observer has seen every packet, one by one, with a right ICRC",
                    not self.end["lost"] and not self.end["coupled"] and not self.end["broken"] and self.packets, self.end)
        acks = self.of("b", "ack")
        back = [(one.psn, two.psn) for one, two in zip(acks, acks[1:]) if behind(two.psn, one.psn) < 0]
        self.expect("b", f"ACKs never go back ({len(acks)})", not back, f"(before, after): {back[:5]}")
        counts = [one.msn for one in acks]
        fewer = [(one, two) for one, two in zip(counts, counts[1:]) if behind(two, one) < 0]
        self.expect("b", "nor do the messages that they count", not fewer, fewer[:5])
        self.last_ones()
        self.no_duplicates()
        for side in "ab":
            if f"{side}.rx_icrc_encapsulated" in self.values:
                bad = sum(1 for one in self.packets if one.side != side and one.action == "corrupt")
                self.same(side, f"{side}'s counter of wrong ICRCs is what was corrupted", self.value(f"{side}.rx_icrc_encapsulated"), bad)
            if f"{side}.rdma_tx_packets" in self.values:
                sent = sum(1 for one in self.packets if one.side == side)
                self.same(side, f"{side}'s counter of packets sent is what was seen", self.value(f"{side}.rdma_tx_packets"), sent)
        if "a.retrans_packets" in self.values:
            again = len(self.resent(self.of("a", "request", "atomic")))
            self.same("a", "a's counter of packets sent again is what was seen", self.value("a.retrans_packets"),
                      again + self.read_again())

    def last_ones(self):
        """At the end all that was asked for is answered, and nothing that was not."""
        asked = self.of("a", "request", "read", "atomic")
        told = [one for one in self.of("b", "ack", "result", "response") if one.action not in LOST]
        if not asked or not told:
            self.expect("ab", "something was asked for and answered", False, f"{len(asked)} requests, {len(told)} answers")
            return
        first = asked[0].psn
        last = max(behind(one.psn, first) + self.psns_of(one) - 1 for one in asked)
        ends = [one for one in asked if behind(one.psn, first) + self.psns_of(one) - 1 == last]
        self.expect("a", "the last PSN is that of the last packet of a message", any(one.place in ("last", "only") for one in ends),
                    [one.place for one in ends])
        # What is read again, or asked for after all, may be answered in between; ACKs do not go back
        self.same("b", "the last PSN that is answered is the last one that was sent", max(behind(one.psn, first) for one in told), last)

    def no_duplicates(self):
        """Who sends a packet again has a reason for it: each time that the requester goes back it was told to, or had
        waited in vain; and each response comes as often as it was asked for."""
        if "a.local_ack_timeout_err" in self.values:
            backs, highest, before = [], None, None
            for one in self.of("a", "request", "read", "atomic"):
                if highest is not None and behind(one.psn, highest) <= 0 and behind(one.psn, before) <= 0:
                    backs.append(one)
                before = one.psn
                if highest is None or behind(one.psn, highest) > 0:
                    highest = one.psn
            told = [one for one in self.of("b", "nak", "rnr") if one.action not in LOST]
            waited = sum(self.value(f"a.{name}") for name in ("local_ack_timeout_err", "roce_adp_retrans", "implied_nak_seq_err"))
            if self.value("selective") or self.value("tries"):
                # One reason is enough for several parts, each when the last one is acknowledged
                good = not backs or waited or told and told[0].number < backs[0].number
            else:
                good = len(backs) <= len(told) + waited
            self.expect("a", f"it never goes back without a reason ({len(backs)} times for {len(told) + waited})", good,
                        [(one.number, one.what, one.psn) for one in backs[:9]])
        asked, more = {}, []
        for one in self.of("a", "read", "atomic"):
            for i in range(self.psns_of(one)):
                asked[(one.psn + i) % PSNS] = asked.get((one.psn + i) % PSNS, 0) + 1
        for one in self.of("b", "response", "result"):
            asked[one.psn] = asked.get(one.psn, 0) - 1
            if asked[one.psn] < 0:
                more.append((one.number, one.psn))
        self.expect("b", "no response comes more often than it was asked for", not more, more[:9])

    def read_again(self):
        """PSNs that READs have asked for once more."""
        asked, again = set(), 0
        for one in self.of("a", "read"):
            psns = {(one.psn + i) % PSNS for i in range(self.psns_of(one))}
            again += len(psns & asked)
            asked |= psns
        return again

    # --- cases ------------------------------------------------------------------------------------------------

    def clean(self):
        """Nothing was done to any packet."""
        self.same("ab", "nothing is sent again", len(self.resent(self.requests)), 0)
        self.same("b", "there is no NAK", len(self.of("b", "nak")), 0)

    def starts(self, lost):
        """The first of each run of packets that were lost one after the other."""
        psns = {one.psn for one in lost}
        return [one.psn for one in lost if (one.psn - 1) % PSNS not in psns]

    def one_nak_for_each(self, lost):
        """Each gap is told of by the PSN that is missing, and none twice.

        Whoever holds what comes behind a gap may ask for the rest of it by its own PSN, and so may whoever does not when
        only a part has come.
        """
        naks, starts = [one.psn for one in self.of("b", "nak")], self.starts(lost)
        more = set(naks) - set(starts)
        self.expect("b", f"each gap is told of by its PSN ({len(naks)} NAKs)", set(starts) <= set(naks), (starts, naks))
        self.expect("b", "and none is told of twice", len(set(naks)) == len(naks), naks)
        allowed = {one.psn for one in lost} if self.value("selective") or self.value("holds") else \
            {(one.psn + 1) % PSNS for one in lost if one.action == "delay"}
        self.expect("b", "and of nothing else", more <= allowed, (sorted(more), sorted(allowed)))
        self.same("b", "and the counter says so", self.value("b.out_of_sequence"), len(naks))
        acted = self.value("a.packet_seq_err")
        if self.value("tries"):
            # What is sent again in parts is asked for by more NAKs, of which one for each PSN counts, or none if the next part is due
            self.expect("a", f"which the requester has acted upon ({acted})", 1 <= acted <= len(set(naks)),
                        (acted, [behind(psn, starts[0]) if starts else psn for psn in naks]))
            self.same("a", "and needed no ACK timeout for", self.value("a.local_ack_timeout_err"), 0)
        else:
            self.same("a", "which the requester has acted upon", acted, len(naks))

    def restart(self, gap, heard):
        """What the requester sends again after it was told of a gap, exactly from there."""
        before = [one for one in self.requests if one.number < heard]
        newest = max(before, key=lambda one: behind(one.psn, gap.psn))
        after = [one for one in self.requests if one.number > heard and behind(one.psn, newest.psn) <= 0]
        self.expect("a", "it is sent again from exactly the missing packet", after and after[0].psn == gap.psn,
                    f"missing {gap.psn}, sent again {[one.psn for one in after[:5]]}")
        return before, newest, after

    def gap(self):
        """A request was dropped, or was corrupt; its successors came."""
        gaps = self.lost(self.requests)
        self.expect("ab", f"requests were lost ({len(gaps)})", gaps)
        self.one_nak_for_each(gaps)
        told = next((one for one in self.of("b", "nak")), None)
        if not gaps or not told:
            return
        shown = next((one for one in self.requests if one.number > gaps[0].number and one.action == "pass"), None)
        if shown:
            self.in_time("b", "it is told of soon after the next packet", shown, told)
        back = next((one for one in self.requests if one.number > told.number and one.psn == gaps[0].psn), None)
        if back:
            self.in_time("a", "and soon after that it is sent again", told, back)
        _, newest, again = self.restart(gaps[0], told.number)
        if self.value("selective"):
            # It does not know how much is missing: it tries a few more, and then twice as many
            furthest = max((behind(one.psn, gaps[-1].psn) for one in again), default=0)
            self.expect("a", f"and little more ({len(again)} for {len(gaps)})", len(again) <= 4 * len(gaps) and
                        furthest <= 4 * len(gaps), [one.psn for one in again])
            return
        psns = [one.psn for one in again]
        wanted = [(gaps[0].psn + i) % PSNS for i in range(behind(newest.psn, gaps[0].psn) + 1)]
        if self.value("tries"):
            missing = [psn for psn in wanted if psn not in psns]
            self.expect("a", f"and all behind it, part by part ({len(psns)} for {len(wanted)})",
                        not missing and len(psns) <= 4 * len(wanted), (missing, psns))
        else:
            # What was on its way to the queue when the NAK came does not count as sent again
            self.same("a", "and all behind it, in order, once", psns, wanted)

    def tail(self):
        """The last request was dropped: nobody can tell of it."""
        gone = [one for one in self.requests if one.action == "drop"]
        again = [one for one in self.requests if gone and one.number > gone[-1].number]
        self.expect("ab", f"the last packet was dropped ({len(gone)})", gone)
        if not gone:
            return
        self.same("b", "there is no NAK", len(self.of("b", "nak")), 0)
        self.expect("a", "it is sent again", again and again[0].psn == gone[-1].psn, [one.psn for one in again[:5]])
        waited = again[0].us - gone[-1].us if again else 0
        timeout = self.value("timeout_us")
        if self.value("asks"):
            # Twice the round trip and four times its deviation, a millisecond at least, and up to some milliseconds later
            bound = min(20000 * int(self.values.get("slow", 1)) + 6 * self.round_trip(1), timeout / 2)
            self.expect("a", f"some round trips later, long before the ACK timeout ({waited} us of {bound:.0f})", 0 < waited < bound,
                        f"timeout {timeout} us")
            self.same("a", "and each time that is counted", self.value("a.roce_adp_retrans"), len(self.resent(self.requests)))
        else:
            self.expect("a", f"after the ACK timeout, at most four times that ({waited} us)", timeout <= waited <= 4 * timeout * 1.25,
                        f"timeout {timeout} us")
            self.same("a", "and that is counted", self.value("a.local_ack_timeout_err"), 1)

    def round_trip(self, part):
        """The time from a request to the ACK that names it, or from a READ request to its first response, in microseconds:
        part 0.5 is the median, 1 the longest.
        """
        sent, times = {}, [0]
        for one in self.packets:
            if one.side == "a" and one.what in ("request", "read"):
                sent[one.psn] = one.us
            elif one.side == "b" and one.what in ("ack", "response") and one.psn in sent:
                times.append(one.us - sent[one.psn])
        times.sort()
        return times[int(part * (len(times) - 1))]

    def nak_lost(self):
        """The NAK itself was dropped."""
        naks = self.of("b", "nak")
        gaps = [one for one in self.requests if one.action == "drop"]
        self.same("b", "one NAK for the gap, and none for what comes behind it", len(naks), 1)
        acked = [one.psn for one in self.of("b", "ack") if naks and one.number < naks[0].number]
        oldest = (acked[-1] + 1) % PSNS if acked else self.requests[0].psn
        again = [one.psn for one in self.resent(self.requests)]
        # An ACK may have been on its way
        self.expect("a", "the oldest packet that is not acknowledged is sent first", again and 0 <= behind(again[0], oldest) and
                    behind(again[0], gaps[0].psn) <= 0, (oldest, again[:5], gaps[0].psn))
        self.same("a", "after the ACK timeout, which is counted", self.value("a.local_ack_timeout_err"), 1)

    def twice(self):
        """What was sent again was dropped, too."""
        gone = [one for one in self.requests if one.action == "drop"]
        self.expect("ab", "the same packet was dropped twice", len(gone) == 2 and gone[0].psn == gone[1].psn, [one.psn for one in gone])

    def repeated(self):
        """A request came twice."""
        self.same("a", "nothing is sent again", len(self.resent(self.requests)), 0)
        self.same("b", "there is no NAK", len(self.of("b", "nak")), 0)
        self.same("b", "the duplicate is counted", self.value("b.duplicate_request"), 1)

    def late(self):
        """Requests were overtaken by those behind them."""
        late = [one for one in self.requests if one.action == "delay"]
        naks = [one.psn for one in self.of("b", "nak")]
        closed = self.value("b.rx_reordered_gaps")
        self.expect("ab", f"packets were late ({len(late)})", late)
        if self.value("selective"):
            # How long it waits it learns from those that were late, so the first may be asked for
            asked = [one for one in late if one.psn in naks]
            self.expect("b", f"gaps that close by themselves are counted, or asked for ({closed}, {len(asked)})",
                        closed <= len(late) <= closed + len(asked), f"{len(late)} late, {closed} counted, asked for {naks}")
            again = len(self.resent(self.requests))
            self.expect("a", f"less is sent again than all ({again} for {len(naks)} NAKs)", again < len({one.psn for one in self.requests}))
        else:
            # One that is late while the requester goes back already makes no gap
            self.one_nak_for_each(late[:1] + [one for one in late[1:] if one.psn in naks])

    def ack_lost(self):
        """An ACK was dropped that a later one, or a response, makes up for."""
        self.expect("ab", "ACKs were dropped", any(one.action == "drop" for one in self.of("b", "ack")))
        asked = self.of("a", "request", "atomic")
        self.same("a", f"nothing of {len(asked)} is sent again", len(self.resent(asked)), 0)
        self.same("a", "nor is anything read again", self.read_again(), 0)

    def result_lost(self):
        """What an atomic operation has found was dropped: a later ACK says that it is done, and not what it has found."""
        gone = self.lost(self.of("b", "result"))
        self.expect("ab", f"results of atomics were dropped ({len(gone)})", gone)
        if not gone:
            return
        asked = self.of("a", "request", "read", "atomic")
        newest = max((one for one in asked if one.number < gone[0].number), key=lambda one: behind(one.psn, gone[0].psn))
        again = [one for one in asked if one.number > gone[0].number and behind(one.psn, newest.psn) <= 0]
        self.expect("a", "the atomic is what is asked for again first", again and again[0].what == "atomic" and
                    again[0].psn == gone[0].psn, [(one.what, one.psn) for one in again[:5]])
        self.same("a", "an implied NAK is counted", self.value("a.implied_nak_seq_err"), 1)
        told = [one for one in self.of("b", "result") if one.psn == gone[0].psn]
        self.expect("b", f"its result comes each time that it is asked for ({len(told)})", len(told) >= 2, told)
        self.expect("b", "and the duplicate is counted", self.value("b.duplicate_request") >= 1, self.value("b.duplicate_request"))

    def response_gap(self):
        """A response to a READ was dropped, or was corrupt."""
        gone = self.lost(self.responses)
        self.expect("ab", f"responses were lost ({len(gone)})", gone)
        if not gone:
            return
        asked = [one for one in self.of("a", "read") if one.number > gone[0].number]
        first = next((one for one in self.of("a", "read") if behind(gone[0].psn, one.psn) >= 0 and one.number < gone[0].number and
                      behind(gone[0].psn, one.psn) < -(-one.bytes // 1024)), None)
        again = next((one for one in asked if one.psn == gone[0].psn), None)
        self.expect("a", "it is asked for again from exactly the missing response", again, [(one.psn, one.bytes) for one in asked[:5]])
        if first and again:
            rest = first.bytes - behind(gone[0].psn, first.psn) * 1024
            self.same("a", "and for exactly the rest", again.bytes, rest)
        shown = next((one for one in self.responses if one.number > gone[0].number and one.action == "pass"), None)
        if again and shown and shown.number < again.number:
            self.in_time("a", "soon after the next response", shown, again)
        self.same("a", "an implied NAK is counted", self.value("a.implied_nak_seq_err"), 1)

    @staticmethod
    def times_apart(packets, interval):
        """How many of them are that far apart, at the most that is sure."""
        count, last = 0, None
        for one in packets:
            if last is None or one.us - last >= interval:
                count, last = count + 1, one.us
        return count

    def marked(self):
        """All requests had met congestion."""
        self.told_of(self.requests, "b")

    def marked_responses(self):
        """All responses to READs had met congestion: it is the requester who tells."""
        self.told_of(self.responses, "a")

    def told_of(self, packets, teller):
        """All of these packets had met congestion, and host "teller" tells the other one."""
        sender = "a" if teller == "b" else "b"
        marked = [one for one in packets if one.action == "mark"]
        told = self.of(teller, "cnp")
        interval = self.value("interval_us")
        self.same(teller, "marked packets are counted", self.value(f"{teller}.np_ecn_marked_roce_packets"), len(marked))
        self.same(teller, "notifications are counted", self.value(f"{teller}.np_cnp_sent"), len(told))
        if not marked or not told:
            self.expect(teller, "packets were marked, and told of", False, f"{len(marked)} marked, {len(told)} told of")
            return
        self.in_time(teller, "the first is told of soon", marked[0], told[0])
        # The receiver may be behind what was seen
        span = (marked + told)[-1].us - marked[0].us
        if interval:
            self.expect(teller, f"there are no more than the interval allows ({len(told)} in {span} us)",
                        len(told) <= span / interval + 2, f"interval {interval} us")
            # Packets that were seen far apart may reach the receiver in one go; of most this is not so
            least = self.times_apart(marked, max(4 * interval, 2000)) / 2
            self.expect(teller, f"and as often as marked packets come ({len(told)} of {least:.0f} at least)", len(told) >= least,
                        f"interval {interval} us")
        else:
            self.same(teller, "each packet is told of, by itself", len(told), len(marked))
        if interval >= 2000 and len(told) > 1:
            # The time is the kernel's, when one leaves its sender, who has looked at the clock before that
            slack = min(1000 * int(self.values.get("slow", 1)), 3 * interval / 4)
            closest = min(two.us - one.us for one, two in zip(told, told[1:]))
            self.expect(teller, f"and no two are closer than the interval ({closest} us)", closest >= interval - slack,
                        f"interval {interval} us")
        self.same(sender, "and the sender counts them", self.value(f"{sender}.rp_cnp_handled") + self.value(f"{sender}.rp_cnp_ignored"),
                  len(told))
        ends = {one.qpn for one in self.packets if one.side == teller and one.what != "cnp"}
        self.expect(teller, "they name the sender's queue pair", {one.qpn for one in told} <= ends, (ends, [one.qpn for one in told[:3]]))
        able = {one.ecn for one in packets}
        self.same(sender, "its packets say whether they may be marked", able, {2 if self.value("slows") else 0})


def main():
    """One case."""
    case, path = sys.argv[1:3]
    trace = Trace(*load(path), dict(word.split("=", 1) for word in sys.argv[3:]))
    trace.always()
    getattr(trace, case)()
    print(f"# {len(trace.packets)} packets, {len(trace.requests)} of them requests")
    print(f"{trace.wrong} wrong")


main()
