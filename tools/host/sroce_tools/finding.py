# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a check has found, and how that is told."""
import json
import sys
from collections import namedtuple

OK, INFO, WARNING, FAULT = "ok", "info", "warning", "fault"
LEVELS = (OK, INFO, WARNING, FAULT)

# subject: the host, a device or a peer; check: a word that stays the same in all versions; advice: what to do, or None
Finding = namedtuple("Finding", "level subject check text advice", defaults=(None,))

COLOURS = {OK: "32", INFO: "0", WARNING: "33", FAULT: "31;1"}


def visible(text):
    """What somebody else has said or named, without what a terminal would obey."""
    return "".join(one if one.isprintable() else "?" for one in text)


def status_of(findings):
    """The exit status that the worst of them makes, as monitoring wants it: 0 all well, 1 warnings, 2 faults."""
    worst = max((LEVELS.index(finding.level) for finding in findings), default=0)
    return max(0, worst - 1)


def as_json(findings, out=sys.stdout):
    """All of them as one object."""
    json.dump({"status": ("ok", "warning", "fault")[status_of(findings)],
               "findings": [finding._asdict() for finding in findings]}, out, indent=1)
    out.write("\n")


def as_text(findings, out=sys.stdout):
    """A line for each, under a heading for each subject."""
    subject, colour = None, out.isatty()
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            out.write(f"{visible(subject)}\n")
        word = {OK: "ok", INFO: "", WARNING: "WARNING", FAULT: "FAULT"}[finding.level]
        word = f"\033[{COLOURS[finding.level]}m{word:7}\033[0m" if colour else f"{word:7}"
        out.write(f"  {word} {visible(finding.text)}\n")
        for line in (finding.advice or "").splitlines():
            out.write(f"          > {visible(line)}\n")
