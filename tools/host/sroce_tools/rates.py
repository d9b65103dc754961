# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What devices and queue pairs do per second, from two looks at what the kernel tells of them (rdma(8))."""
import time

from . import rdma, system

PSNS, COUNTS = 1 << 24, 1 << 32
# What stays the same as long as a queue pair is there and connected
IDENTITY = ("type", "pid", "comm", "rqpn", "pdn")
# What counts from 0 when it is made
COUNTED = ("drv_sq_done", "drv_sq_fetched", "drv_rq_taken")

# Of a device, per second: the counters that are added up for a column
DEVICE_COLUMNS = {
    "tx_packets": ("rdma_tx_packets",), "rx_packets": ("rdma_rx_packets",),
    "tx_bytes": ("rdma_tx_bytes",), "rx_bytes": ("rdma_rx_bytes",), "direct_bytes": ("direct_bytes",),
    "tx_trains": ("tx_trains",), "rx_trains": ("rx_trains",),
    "resent": ("retrans_packets",), "timeouts": ("local_ack_timeout_err",),
    "gaps": ("packet_seq_err", "implied_nak_seq_err"),
    "rnr": ("out_of_buffer", "rnr_nak_retry_err"),
    "marked": ("np_ecn_marked_roce_packets",), "cnps": ("np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored"),
    "dropped": ("tx_dropped_packets", "rx_icrc_encapsulated", "rx_malformed_packets", "rx_discarded_packets"),
}


class Look:
    """What there is at one time."""

    def __init__(self, wanted=(), queue_pairs=True):
        self.time, self.wanted = time.monotonic(), wanted
        self.devices = {device.name: (device, device.counters()) for device in rdma.devices()
                        if not wanted or device.name in wanted}
        self.devices = {name: pair for name, pair in self.devices.items() if "tx_trains" in pair[1]}
        found = system.run_json("rdma", "-j", "-dd", "resource", "show", "qp") if queue_pairs and self.devices else None
        # None: nobody has asked, or there is no answer
        self.queue_pairs = None if found is None else {
            (one["ifname"], one["lqpn"]): one for one in found if one.get("ifname") in self.devices}


def of_devices(before, after):
    """A dictionary for each device that was there both times."""
    seconds = max(after.time - before.time, 0.001)
    for name, (device, count) in after.devices.items():
        if name not in before.devices:
            continue
        then = before.devices[name][1]
        row = {column: sum(max(count.get(one, 0) - then.get(one, 0), 0) for one in counters) / seconds
               for column, counters in DEVICE_COLUMNS.items()}
        trains = row.pop("tx_trains") + row.pop("rx_trains")
        row["packets_per_train"] = (row["tx_packets"] + row["rx_packets"]) / trains if trains else 0
        row["queue_pairs"] = None if after.queue_pairs is None else sum(1 for where, _ in after.queue_pairs if where == name)
        yield {"device": name, "netdev": device.netdev or "", "state": device.state, **row}


def is_another(then, now):
    """Was a queue pair's number given to another one between two looks?

    Whose it is tells, or a count that has gone back: what came round at 2^32 goes forward by less than half of that.
    """
    if any(then.get(name) != now.get(name) for name in IDENTITY):
        return True
    return any((now.get(name, 0) - then.get(name, 0)) % COUNTS >= COUNTS // 2 for name in COUNTED)


def of_queue_pairs(before, after):
    """A dictionary for each queue pair of now, the busiest first. Of a new one there are no rates yet: they are 0.

    Messages are requests that are done with. PSNs are packets, with those that a READ will be answered with; only who may
    change the network (CAP_NET_ADMIN) is told them.
    """
    seconds = max(after.time - before.time, 0.001)
    rows = []
    for key, now in (after.queue_pairs or {}).items():
        then = (before.queue_pairs or {}).get(key, now)
        if is_another(then, now):
            then = now

        def rate(what, modulus=PSNS, then=then, now=now):
            if what not in now:
                return None
            return (now[what] - then.get(what, now[what])) % modulus / seconds if now.get("state") == then.get("state") else 0

        rows.append({
            "device": key[0], "qpn": key[1], "type": now.get("type", ""), "state": now.get("state", ""),
            "peer_qpn": now.get("rqpn"), "pid": now.get("pid"), "program": now.get("comm", ""),
            "messages": rate("drv_sq_done", COUNTS),
            "tx_psns": rate("drv_sq_next_psn"), "rx_psns": rate("drv_rq_epsn"),
            "in_flight": (now["drv_sq_next_psn"] - now["drv_sq_una_psn"]) % PSNS if "drv_sq_una_psn" in now else None,
            "queued": (now.get("drv_sq_fetched", 0) - now.get("drv_sq_done", 0)) % COUNTS,
            "retries_left": now.get("drv_sq_retries_left"), "rnr_wait": now.get("drv_sq_rnr_wait"),
            "rate_kbps": now.get("drv_cc_rate_kbps", 0), "rtt_us": now.get("drv_cc_srtt_ns", 0) / 1000,
        })
    return sorted(rows, key=lambda row: -((row["tx_psns"] or 0) + (row["rx_psns"] or 0) + (row["messages"] or 0)))
