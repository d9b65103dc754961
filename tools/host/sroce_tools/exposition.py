# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Prometheus's text format, and files of it that nobody reads half written."""
import errno
import os
import stat
import tempfile

COUNTER, GAUGE = "counter", "gauge"


class Family:
    """A metric: its name, what it is, and its samples."""

    def __init__(self, name, kind, text):
        self.name, self.kind, self.text = name, kind, text
        self.samples = []

    def add(self, value, **labels):
        """One more sample."""
        self.samples.append((labels, value))

    def lines(self):
        """As it is scraped; none without a sample."""
        if self.samples:
            yield f"# HELP {self.name} {escaped(self.text)}"
            yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            inside = ",".join(f'{name}="{quoted(text)}"' for name, text in labels.items())
            yield f"{self.name}{{{inside}}} {value}" if inside else f"{self.name} {value}"


def escaped(text):
    """Of a HELP line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def quoted(text):
    """Of a label: names of netdevs may have quotes in them."""
    return escaped(str(text)).replace('"', '\\"')


def text_of(families):
    """All of them."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def replace(path, text):
    """Put it into a file, all at once: whoever reads sees what was there before or this. Anybody may read it.

    The folder may be another user's. A link there is not followed, and what else is no file is neither opened, which could
    take for ever, nor replaced: it may be a device.
    """
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "is no file, and stays")
    folder, name = os.path.split(os.path.abspath(path))
    # Not ".prom" at the end: the textfile collector does not take it for one of its files
    handle, new = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
