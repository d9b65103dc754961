# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What sroce counts and has, as metrics with Prometheus's conventions: Documentation/watching.md."""
from . import rdma, system
from .exposition import COUNTER, GAUGE, Family

# The driver's counters (Documentation/counters.md), and what is said of each. The metric is sroce_NAME_total.
COUNTERS = {
    "rx_write_requests": "WRITEs accepted",
    "rx_read_requests": "READs accepted",
    "rx_atomic_requests": "Atomics accepted",
    "out_of_buffer": "Messages received for which there was no receive work request",
    "out_of_sequence": "Sequence NAKs sent; UC: gaps",
    "duplicate_request": "Requests received that had been carried out before",
    "rx_held_packets": "Requests and responses held because one before them was missing",
    "rx_held_dropped_packets": "Held ones that were dropped before what was missing came",
    "rx_reordered_gaps": "Gaps that were no loss: what was missing came by itself",
    "odp_page_faults": "Times that a queue pair waited for pages of memory on demand",
    "resp_local_length_error": "Messages longer than their receive work request",
    "resp_cqe_error": "Receive completions in error",
    "resp_cqe_flush_error": "Receive completions flushed",
    "resp_remote_access_errors": "Remote access NAKs sent",
    "rnr_nak_retry_err": "RNR NAKs received: the peer had no receive work request",
    "packet_seq_err": "Sequence NAKs acted upon: something was sent again because the peer missed it",
    "implied_nak_seq_err": "Responses that skipped over a READ or atomic: it was sent again",
    "local_ack_timeout_err": "ACK timeouts: something was sent again because nobody answered",
    "req_transport_retries_exceeded": "Queue pairs that gave up on a peer that does not answer",
    "req_rnr_retries_exceeded": "Queue pairs that gave up on a peer that posts no receives",
    "req_cqe_error": "Send completions in error",
    "req_cqe_flush_error": "Send completions flushed",
    "req_remote_invalid_request": "Invalid request NAKs received",
    "req_remote_access_errors": "Remote access NAKs received",
    "retrans_packets": "PSNs sent again",
    "np_ecn_marked_roce_packets": "Packets received that a switch had marked (ECN)",
    "np_cnp_sent": "Notifications of congestion (CNPs) sent",
    "rp_cnp_handled": "Notifications of congestion (CNPs) received by queue pairs that slow down",
    "rp_cnp_ignored": "Notifications of congestion (CNPs) received where nobody slows down",
    "roce_adp_retrans": "Tails asked after before the ACK timeout",
    "rx_icrc_encapsulated": "Packets dropped: wrong ICRC",
    "rx_malformed_packets": "Packets dropped: malformed",
    "rx_no_qp_packets": "Packets dropped: no queue pair of that number",
    "rx_wrong_path_packets": "Packets dropped: not from the address of the connected peer",
    "rx_bad_pkey_packets": "Packets dropped: P_Key",
    "rx_bad_qkey_packets": "Packets dropped: Q_Key",
    "rx_discarded_packets": "Packets dropped: the queue pair takes none such in its state",
    "tx_dropped_packets": "Packets not sent: no memory, no route, or a firewall",
    "rdma_tx_packets": "RoCE packets sent",
    "rdma_tx_bytes": "Bytes of RoCE packets sent, from BTH to ICRC",
    "rdma_rx_packets": "RoCE packets received",
    "rdma_rx_bytes": "Bytes of RoCE packets received, from BTH to ICRC",
    "direct_packets": "Packets between queue pairs of this host, which are never made",
    "direct_bytes": "Bytes between queue pairs of this host",
    "tx_trains": "Buffers that the packets sent were in",
    "rx_trains": "Buffers that the packets received were in",
    "rx_multicast_packets": "Packets received that were to multicast groups",
    "tx_multicast_packets": "Packets sent to multicast groups",
}
# Names that monitoring of other drivers expects: always 0 here
ALWAYS_ZERO = ("rx_dct_connect", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans")


def of_counters(devices):
    """The counters of the devices, a (device, counters) pair each; one that a later driver has is there, too."""
    names = dict.fromkeys(name for _, counted in devices for name in counted if name not in ALWAYS_ZERO)
    for name in names:
        family = Family(f"sroce_{name}_total", COUNTER, COUNTERS.get(name, f"The counter {name} of the driver"))
        for device, counted in devices:
            if name in counted:
                family.add(counted[name], device=device.name)
        yield family


def of_devices(devices):
    """Which there are, on which netdevs, and whether they are up."""
    number = Family("sroce_devices", GAUGE, "Devices of sroce")
    number.add(len(devices))
    info = Family("sroce_device_info", GAUGE, "The netdev of a device; always 1")
    active = Family("sroce_device_active", GAUGE, "1 if the port is active")
    for device, _ in devices:
        info.add(1, device=device.name, netdev=device.netdev or "")
        active.add(int(device.state.upper() == "ACTIVE"), device=device.name)
    yield from (number, info, active)


def of_settings(devices):
    """What the device does about congestion and losses, as sysfs shows it."""
    for name, path, text in (
            ("congestion_np_enabled", "cc_params/np_enable", "1 if senders of marked packets are told"),
            ("congestion_rp_enabled", "cc_params/rp_enable",
             "1 if queue pairs slow down when they are told, 2 if they find out whether the peer tells"),
            ("selective_repeat_enabled", "roce_accl/selective_repeat_en", "1 if requests and responses behind a gap are held"),
            ("adaptive_retransmission_enabled", "roce_accl/adp_retrans_en", "1 if lost tails are asked after")):
        family = Family(f"sroce_{name}", GAUGE, text)
        for device, _ in devices:
            value = device.setting(path)
            if value is not None:
                family.add(value, device=device.name)
        yield family


def of_queue_pairs(devices, queue_pairs):
    """How many there are, and what congestion has done to them."""
    number = Family("sroce_queue_pairs", GAUGE, "Queue pairs, by type and state")
    limited = Family("sroce_congestion_limited_queue_pairs", GAUGE, "Queue pairs that congestion holds back")
    lowest = Family("sroce_congestion_lowest_rate_bytes_per_second", GAUGE,
                    "The rate of the queue pair that congestion holds back most; absent while it holds back none")
    slowest = Family("sroce_round_trip_longest_seconds", GAUGE, "The longest of the queue pairs' round trips, smoothed")
    for device, _ in devices:
        ours = [one for one in queue_pairs if one.get("ifname") == device.name]
        kinds = [(one.get("type", ""), one.get("state", "")) for one in ours]
        for kind in sorted(set(kinds)):
            number.add(kinds.count(kind), device=device.name, type=kind[0], state=kind[1])
        rates = [one["drv_cc_rate_kbps"] for one in ours if one.get("drv_cc_rate_kbps")]
        limited.add(len(rates), device=device.name)
        if rates:
            lowest.add(min(rates) * 125, device=device.name)
        slowest.add(max((one.get("drv_cc_srtt_ns", 0) for one in ours), default=0) / 1e9, device=device.name)
    yield from (number, limited, lowest, slowest)


def of_turns():
    """How long the driver has had a processor at a stretch, if somebody has had it measured."""
    longest = Family("sroce_turn_longest_seconds", GAUGE, "The longest turn of a processor since it is measured")
    largest = Family("sroce_turn_largest_bytes", GAUGE, "The most that was moved in one turn since it is measured")
    microseconds = system.read_number("/sys/module/sroce/parameters/longest_turn")
    size = system.read_number("/sys/module/sroce/parameters/largest_turn")
    if microseconds is not None:
        longest.add(microseconds / 1e6)
    if size is not None:
        largest.add(size)
    yield from (longest, largest)


def collected(with_queue_pairs=True):
    """All families, of all devices that this network namespace sees."""
    devices = [(device, device.counters()) for device in rdma.devices()]
    devices = [pair for pair in devices if "tx_trains" in pair[1]]
    yield from of_devices(devices)
    yield from of_counters(devices)
    yield from of_settings(devices)
    queue_pairs = system.run_json("rdma", "-j", "-dd", "resource", "show", "qp") if with_queue_pairs else None
    # Nothing is said of what is not known
    if queue_pairs is not None:
        yield from of_queue_pairs(devices, queue_pairs)
    yield from of_turns()
