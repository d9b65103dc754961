// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Performance management: the port counters of IBA 16.1, which also fill
 * ports/1/counters in sysfs. They are read only: nobody on the network may
 * reset what others watch.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "counters.h"
#include "verbs/limits.h"
#include "verbs/verbs.h"

#define SROCE_PMA_VERSION 1
#define SROCE_PMA_ALL_PORTS 0xff
/* 4.096 us * 2^18: about a second to answer */
#define SROCE_PMA_RESP_TIME 18

/**
 * struct sroce_pma - traffic of the port, in PMA's terms
 * @xmit_words: bytes sent, in units of four
 * @rcv_words: bytes received, likewise
 * @xmit_pkts: packets sent
 * @rcv_pkts: packets received
 * @xmit_mcast: of these, to multicast groups
 * @rcv_mcast: likewise
 */
struct sroce_pma {
	u64 xmit_words;
	u64 rcv_words;
	u64 xmit_pkts;
	u64 rcv_pkts;
	u64 xmit_mcast;
	u64 rcv_mcast;
};

static void sroce_pma_read(struct sroce_device *dev, struct sroce_pma *p)
{
	p->xmit_words = sroce_port_count(dev, SROCE_CNT_TX_BYTES) / 4;
	p->rcv_words = sroce_port_count(dev, SROCE_CNT_RX_BYTES) / 4;
	p->xmit_mcast = sroce_port_count(dev, SROCE_CNT_TX_MCAST_PACKETS);
	p->rcv_mcast = sroce_port_count(dev, SROCE_CNT_RX_MCAST_PACKETS);
	/* read after the multicast part, so that the difference is never negative */
	p->xmit_pkts = max(sroce_port_count(dev, SROCE_CNT_TX_PACKETS),
			   p->xmit_mcast);
	p->rcv_pkts = max(sroce_port_count(dev, SROCE_CNT_RX_PACKETS),
			  p->rcv_mcast);
}

static u8 sroce_pma_sat8(u64 n)
{
	return min_t(u64, n, U8_MAX);
}

static __be16 sroce_pma_sat16(u64 n)
{
	return cpu_to_be16(min_t(u64, n, U16_MAX));
}

static __be32 sroce_pma_sat32(u64 n)
{
	return cpu_to_be32(min_t(u64, n, U32_MAX));
}

static void sroce_pma_class_info(struct ib_class_port_info *info)
{
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = SROCE_PMA_VERSION;
	info->capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT |
				IB_PMA_CLASS_CAP_EXT_WIDTH;
	info->cap_mask2_resp_time = cpu_to_be32(SROCE_PMA_RESP_TIME);
}

static void sroce_pma_counters(struct sroce_device *dev,
			       struct ib_pma_portcounters *c)
{
	struct sroce_pma p;
	u64 bad;

	sroce_pma_read(dev, &p);
	bad = sroce_port_count(dev, SROCE_CNT_RX_ICRC_ENCAPSULATED) +
	      sroce_port_count(dev, SROCE_CNT_RX_MALFORMED);
	c->link_downed_counter = sroce_pma_sat8(atomic_read(&dev->link_downed));
	c->port_rcv_errors = sroce_pma_sat16(bad);
	c->port_xmit_discards =
		sroce_pma_sat16(sroce_port_count(dev, SROCE_CNT_TX_DROPS));
	c->port_rcv_constraint_errors =
		sroce_pma_sat8(sroce_port_count(dev, SROCE_CNT_RX_BAD_PKEY));
	c->port_xmit_data = sroce_pma_sat32(p.xmit_words);
	c->port_rcv_data = sroce_pma_sat32(p.rcv_words);
	c->port_xmit_packets = sroce_pma_sat32(p.xmit_pkts);
	c->port_rcv_packets = sroce_pma_sat32(p.rcv_pkts);
}

static void sroce_pma_counters_ext(struct sroce_device *dev,
				   struct ib_pma_portcounters_ext *c)
{
	struct sroce_pma p;

	sroce_pma_read(dev, &p);
	c->port_xmit_data = cpu_to_be64(p.xmit_words);
	c->port_rcv_data = cpu_to_be64(p.rcv_words);
	c->port_xmit_packets = cpu_to_be64(p.xmit_pkts);
	c->port_rcv_packets = cpu_to_be64(p.rcv_pkts);
	c->port_unicast_xmit_packets = cpu_to_be64(p.xmit_pkts - p.xmit_mcast);
	c->port_unicast_rcv_packets = cpu_to_be64(p.rcv_pkts - p.rcv_mcast);
	c->port_multicast_xmit_packets = cpu_to_be64(p.xmit_mcast);
	c->port_multicast_rcv_packets = cpu_to_be64(p.rcv_mcast);
}

/* Both kinds of port counters have the port at the same place */
static bool sroce_pma_port_ok(const struct ib_pma_mad *in)
{
	const struct ib_pma_portcounters *c = (const void *)in->data;

	return c->port_select == SROCE_PORT ||
	       c->port_select == SROCE_PMA_ALL_PORTS;
}

static u16 sroce_pma_get(struct sroce_device *dev, const struct ib_pma_mad *in,
			 struct ib_pma_mad *out)
{
	if (in->mad_hdr.attr_id == IB_PMA_CLASS_PORT_INFO) {
		sroce_pma_class_info((void *)out->data);
		return IB_MGMT_MAD_STATUS_SUCCESS;
	}
	if (in->mad_hdr.attr_id != IB_PMA_PORT_COUNTERS &&
	    in->mad_hdr.attr_id != IB_PMA_PORT_COUNTERS_EXT)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	if (!sroce_pma_port_ok(in))
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;

	/* port and counter selection are returned as they came */
	memcpy(out->data, in->data,
	       offsetof(struct ib_pma_portcounters, symbol_error_counter));
	if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS)
		sroce_pma_counters(dev, (void *)out->data);
	else
		sroce_pma_counters_ext(dev, (void *)out->data);
	return IB_MGMT_MAD_STATUS_SUCCESS;
}

static u16 sroce_pma_answer(struct sroce_device *dev,
			    const struct ib_pma_mad *in, struct ib_pma_mad *out)
{
	if (in->mad_hdr.class_version != SROCE_PMA_VERSION)
		return IB_MGMT_MAD_STATUS_BAD_VERSION;
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD;
	return sroce_pma_get(dev, in, out);
}

/* Only requests are answered: an answer to an answer would go on for ever */
static bool sroce_pma_is_request(const struct ib_mad_hdr *hdr)
{
	return hdr->mgmt_class == IB_MGMT_CLASS_PERF_MGMT &&
	       (hdr->method == IB_MGMT_METHOD_GET ||
		hdr->method == IB_MGMT_METHOD_SET);
}

int sroce_ib_process_mad(struct ib_device *ibdev, int flags, u32 port,
			 const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			 const struct ib_mad *in, struct ib_mad *out,
			 size_t *out_size, u16 *out_pkey_index)
{
	struct ib_pma_mad *answer = (struct ib_pma_mad *)out;
	u16 status;

	BUILD_BUG_ON(sizeof(struct ib_pma_mad) != sizeof(struct ib_mad));
	if (port != SROCE_PORT || !sroce_pma_is_request(&in->mad_hdr))
		return IB_MAD_RESULT_SUCCESS;
	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	status = sroce_pma_answer(to_sroce_device(ibdev),
				  (const struct ib_pma_mad *)in, answer);
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->mad_hdr.status = cpu_to_be16(status);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
