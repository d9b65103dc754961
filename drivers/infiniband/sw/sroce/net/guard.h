/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Netfilter hooks at NF_INET_LOCAL_OUT.
 */
#ifndef SROCE_NET_GUARD_H
#define SROCE_NET_GUARD_H

struct nf_hook_state;
struct sk_buff;

unsigned int sroce_guard_ipv4(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);
unsigned int sroce_guard_ipv6(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state);

#endif
