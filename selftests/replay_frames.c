// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Captured packets as bytes, and field by field (replay_frames.h).
 */
#include <stdio.h>
#include <string.h>

#include "replay_frames.h"

#define BTH (IP4_LEN + UDP_LEN)
#define EXT (BTH + BTH_LEN)

static const struct place_of {
	const char *name;
	uint8_t at, len, mask;
} places[FIELDS] = {
	[F_VERSION] = { "IP version", 0, 1, 0xff },
	[F_TOS] = { "type of service", 1, 1, 0xff },
	[F_IP_LEN] = { "IP length", 2, 2, 0xff },
	[F_IP_ID] = { "IP identification", 4, 2, 0xff },
	[F_FRAGMENT] = { "fragment", 6, 2, 0xff },
	[F_TTL] = { "time to live", 8, 1, 0xff },
	[F_PROTOCOL] = { "protocol", 9, 1, 0xff },
	[F_ADDRESSES] = { "addresses", 12, 8, 0xff },
	[F_SPORT] = { "UDP source port", 20, 2, 0xff },
	[F_DPORT] = { "UDP destination port", 22, 2, 0xff },
	[F_UDP_LEN] = { "UDP length", 24, 2, 0xff },
	[F_UDP_SUM] = { "UDP checksum", 26, 2, 0xff },
	[F_OPCODE] = { "opcode", BTH, 1, 0xff },
	[F_SOLICITED] = { "solicited", BTH + 1, 1, 0x80 },
	[F_MIGRATION] = { "migration", BTH + 1, 1, 0x40 },
	[F_PAD] = { "pad", BTH + 1, 1, 0x30 },
	[F_TVER] = { "transport version", BTH + 1, 1, 0x0f },
	[F_PKEY] = { "P_Key", BTH + 2, 2, 0xff },
	[F_RESERVED] = { "FECN, BECN and what is reserved behind them", BTH + 4, 1, 0xff },
	[F_QPN] = { "queue pair", BTH + 5, 3, 0xff },
	[F_ACKREQ] = { "ACK request", BTH + 8, 1, 0x80 },
	[F_RESERVED_7] = { "what is reserved before the PSN", BTH + 8, 1, 0x7f },
	[F_PSN] = { "PSN", BTH + 9, 3, 0xff },
	/* of an AETH */
	[F_SYNDROME] = { "kind of syndrome", EXT, 1, 0xe0 },
	[F_CREDITS] = { "credits", EXT, 1, 0x1f },
	[F_MSN] = { "MSN", EXT + 1, 3, 0xff },
	/* these have no fixed place */
	[F_EXTENDED] = { "another header", 0, 0, 0 },
	[F_PAYLOAD] = { "payload", 0, 0, 0 },
	[F_LENGTH] = { "length", 0, 0, 0 },
};

static size_t unhex(uint8_t *out, const char *hex)
{
	unsigned int byte;
	size_t n = 0;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		out[n++] = byte;
	return n;
}

struct packet packet_captured(const struct captured *c)
{
	struct packet p = {};

	p.len = unhex(p.bytes, c->headers);
	unhex(p.bytes + p.len, c->data);
	p.len += c->payload;
	p.len += unhex(p.bytes + p.len, c->icrc);
	return p;
}

static size_t headers_len(struct packet *p)
{
	return EXT + wire_ext_len(wire_opcode(packet_bth(p)[0]));
}

uint8_t *packet_payload(struct packet *p)
{
	return p->bytes + headers_len(p);
}

size_t packet_payload_len(struct packet *p)
{
	return p->len - headers_len(p) - ICRC_LEN;
}

void packet_seal(struct packet *p)
{
	wire_icrc(p->bytes, p->len - ICRC_LEN, p->bytes + p->len - ICRC_LEN);
}

void packet_readdress(struct packet *p, uint32_t qpn)
{
	put24(packet_bth(p) + 5, qpn);
	packet_seal(p);
}

bool packet_icrc_ok(const struct packet *p)
{
	uint8_t icrc[ICRC_LEN];

	wire_icrc(p->bytes, p->len - ICRC_LEN, icrc);
	return !memcmp(icrc, p->bytes + p->len - ICRC_LEN, ICRC_LEN);
}

static bool differs(const uint8_t *a, const uint8_t *b, size_t len, uint8_t mask)
{
	while (len--)
		if ((*a++ ^ *b++) & mask)
			return true;
	return false;
}

uint32_t packet_differences(struct packet *theirs, struct packet *ours)
{
	bool aeth = wire_opcode(packet_bth(theirs)[0]) & H_AETH;
	size_t headers = headers_len(theirs), ext = EXT + (aeth ? 4 : 0);
	uint32_t found = 0;
	enum field f;

	if (ours->len != theirs->len)
		return 1u << F_LENGTH;
	for (f = 0; f < FIELDS; f++) {
		if (!places[f].len || (f >= F_SYNDROME && !aeth))
			continue;
		if (differs(theirs->bytes + places[f].at, ours->bytes + places[f].at, places[f].len, places[f].mask))
			found |= 1u << f;
	}
	if (differs(theirs->bytes + ext, ours->bytes + ext, headers - ext, 0xff))
		found |= 1u << F_EXTENDED;
	if (differs(theirs->bytes + headers, ours->bytes + headers, theirs->len - headers - ICRC_LEN, 0xff))
		found |= 1u << F_PAYLOAD;
	return found;
}

const char *packet_field_names(uint32_t fields)
{
	static char text[512];
	size_t n = 0;
	enum field f;

	if (!fields)
		return "nothing";
	for (f = 0; f < FIELDS; f++)
		if (fields & 1u << f)
			n += snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "", places[f].name);
	return text;
}
