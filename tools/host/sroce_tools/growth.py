# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Counters that were read twice: what happens now, and what has happened since they began at 0.

A counter never forgets. One packet that somebody forged a year ago is no reason to call a device faulty today.
"""
import time

SECONDS = 1  # at least, between the two


class Growth:
    """What some counters have become since this was made; read: a function that gives them by name."""

    def __init__(self, read):
        self.read, self.start, self.before, self.seconds, self.total = read, time.monotonic(), read(), 0.0, None

    def look(self):
        """Read them again, not too soon; what they are now."""
        if self.total is None:
            time.sleep(max(0.0, self.start + SECONDS - time.monotonic()))
            self.total, self.seconds = self.read(), time.monotonic() - self.start
        return self.total

    def of(self, *names):
        """By how much they have grown together. One that has become less has begun anew."""
        total = self.look()
        grown = [(total.get(name, 0), self.before.get(name, 0)) for name in names]
        return sum(now - then if now >= then else now for now, then in grown)

    def lately(self, number):
        """How many of something there were between the two, for people."""
        return f"{number or 'none'} in the last {self.seconds:.1f} s"


def share(part, whole):
    """How much of the whole something is, for people."""
    if not whole:
        return ""
    percent = 100 * part / whole
    return f", {percent:.3g} %" if percent >= 0.001 else ", less than 0.001 %"
