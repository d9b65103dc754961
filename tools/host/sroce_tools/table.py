# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Rates as tables of text: the same lines for a terminal and for a file."""
import time

from . import rates
from .finding import visible

# heading, name of the value, width, format; a width below 0: to the left
DEVICES = (
    ("DEVICE", "device", -16, str), ("NETDEV", "netdev", -15, str), ("STATE", "state", -6, str),
    ("TX-Mb/s", "tx_bytes", 9, lambda value: f"{value * 8 / 1e6:.1f}"), ("RX-Mb/s", "rx_bytes", 9, lambda value: f"{value * 8 / 1e6:.1f}"),
    ("HOST-Mb/s", "direct_bytes", 9, lambda value: f"{value * 8 / 1e6:.1f}"),
    ("TX-pkt/s", "tx_packets", 9, None), ("RX-pkt/s", "rx_packets", 9, None),
    ("PKT/TRAIN", "packets_per_train", 9, lambda value: f"{value:.1f}" if value else "-"),
    ("RESENT", "resent", 7, None), ("TIMEOUT", "timeouts", 7, None), ("GAPS", "gaps", 6, None), ("RNR", "rnr", 6, None),
    ("MARKED", "marked", 7, None), ("CNP", "cnps", 6, None), ("DROP", "dropped", 6, None), ("QPS", "queue_pairs", 6, None),
)
QUEUE_PAIRS = (
    ("DEVICE", "device", -16, str), ("QPN", "qpn", 8, None), ("TYPE", "type", -4, str), ("STATE", "state", -5, str),
    ("PEER", "peer_qpn", 8, None), ("MSG/s", "messages", 9, None), ("TX-PSN/s", "tx_psns", 9, None), ("RX-PSN/s", "rx_psns", 9, None),
    ("FLIGHT", "in_flight", 6, None), ("QUEUED", "queued", 6, None), ("TRIES", "retries_left", 5, None),
    ("RTT-us", "rtt_us", 7, lambda value: f"{value:.0f}" if value else "-"),
    ("RATE-Mb/s", "rate_kbps", 9, lambda value: f"{value / 1000:.0f}" if value else "-"),
    ("PID", "pid", 7, None), ("PROGRAM", "program", -15, str),
)


def number(value):
    """A count, or a dash where there is none."""
    return "-" if value is None else f"{value:.0f}"


def cell(value, width, form):
    """A value in its column."""
    text = visible((form or number)(value))[:abs(width)]
    return text.ljust(-width) if width < 0 else text.rjust(width)


def line(columns, row):
    """A row under its headings."""
    return " ".join(cell(row.get(name), width, form) for _, name, width, form in columns).rstrip()


def heading(columns):
    """The headings."""
    return " ".join(cell(title, width, str) for title, _, width, _ in columns).rstrip()


def lines(before, after, most):
    """All of it: devices, then the busiest queue pairs; most: how many of these, None for all."""
    yield f"sroce-top {time.strftime('%H:%M:%S')}, per second of the last {after.time - before.time:.1f}"
    yield heading(DEVICES)
    for row in rates.of_devices(before, after):
        yield line(DEVICES, row)
    yield from (f"there is no sroce device {visible(name)}" for name in after.wanted if name not in after.devices)
    if not after.devices and not after.wanted:
        yield "there is no sroce device in this network namespace"
    found = rates.of_queue_pairs(before, after)[:most]
    if found:
        yield ""
        yield heading(QUEUE_PAIRS)
        for row in found:
            yield line(QUEUE_PAIRS, row)
