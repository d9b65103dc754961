/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * replay_frames: captured packets (captured.h) as bytes, addressed to a queue pair of ours, and compared with what is
 * sent here in the same place.
 */
#ifndef REPLAY_FRAMES_H
#define REPLAY_FRAMES_H

#include "captured.h"
#include "wire.h"

#define PACKET_MOST 1500
#define IP4_LEN 20

/* from the IPv4 header to the ICRC */
struct packet {
	uint8_t bytes[PACKET_MOST];
	size_t len;
};

static inline uint8_t *packet_bth(struct packet *p)
{
	return p->bytes + IP4_LEN + UDP_LEN;
}

/* what is behind the headers that its opcode has, with the pad */
uint8_t *packet_payload(struct packet *p);
size_t packet_payload_len(struct packet *p);

/* exactly what was captured, but for the payload that is not here */
struct packet packet_captured(const struct captured *c);
/* the ICRC anew */
void packet_seal(struct packet *p);
/* for another queue pair than it was meant for */
void packet_readdress(struct packet *p, uint32_t qpn);
bool packet_icrc_ok(const struct packet *p);

/* What may differ between two packets; bits of a mask */
enum field {
	F_VERSION, F_TOS, F_IP_LEN, F_IP_ID, F_FRAGMENT, F_TTL, F_PROTOCOL, F_ADDRESSES,
	F_SPORT, F_DPORT, F_UDP_LEN, F_UDP_SUM,
	F_OPCODE, F_SOLICITED, F_MIGRATION, F_PAD, F_TVER, F_PKEY, F_RESERVED, F_QPN, F_ACKREQ, F_RESERVED_7, F_PSN,
	F_SYNDROME, F_CREDITS, F_MSN, F_EXTENDED, F_PAYLOAD, F_LENGTH, FIELDS,
};

/*
 * The fields in which @ours is not @theirs. Not among them are the two checksums that follow from the other fields,
 * that of the IPv4 header and the ICRC.
 */
uint32_t packet_differences(struct packet *theirs, struct packet *ours);
/* their names; "nothing" for none. The text is good until the next call. */
const char *packet_field_names(uint32_t fields);

#endif
