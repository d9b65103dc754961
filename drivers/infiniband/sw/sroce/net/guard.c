// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who may send to UDP port 4791 from this host, besides the driver itself.
 *
 * A connected QP believes a packet whose addresses and numbers are right. All
 * processes of a host share its addresses, anybody can ask for QP numbers and
 * PSNs ("rdma resource show qp"), and the ICRC is no secret: with an ordinary UDP
 * socket one process could speak to a peer as another one's QP. So whoever may
 * not send raw packets, which takes CAP_NET_RAW, may not send RoCE either, and
 * sendmsg() says EPERM.
 *
 * Only where there is a device: another host's answer to the same question is
 * that host's own.
 */
#include <linux/capability.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/preempt.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "net/guard.h"
#include "net/net.h"
#include "net/socket.h"

/* Is it from a socket of a process? The driver and tunnels send from the kernel's own */
static bool sroce_guard_is_process(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	return sk && sk_fullsock(sk) && !sk->sk_kern_sock &&
	       sk->sk_type != SOCK_RAW;
}

/* A socket that no process has open any more has nobody's rights */
static bool sroce_guard_opener_may(struct sock *sk, struct user_namespace *ns)
{
	bool may;

	read_lock_bh(&sk->sk_callback_lock);
	may = sk->sk_socket && sk->sk_socket->file &&
	      file_ns_capable(sk->sk_socket->file, ns, CAP_NET_RAW);
	read_unlock_bh(&sk->sk_callback_lock);
	return may;
}

/*
 * Both are asked: whoever writes, and whoever has opened the socket. What a privileged
 * program writes to its standard error may go to a socket that an unprivileged one has
 * put there. In a softirq nobody writes: no.
 */
static bool sroce_guard_may_send_raw(const struct net *net, struct sock *sk)
{
	return in_task() && ns_capable_noaudit(net->user_ns, CAP_NET_RAW) &&
	       sroce_guard_opener_may(sk, net->user_ns);
}

static unsigned int sroce_guard(const struct sk_buff *skb, unsigned int off,
				const struct net *net)
{
	if (!sroce_skb_is_roce(skb, off) ||
	    sroce_guard_may_send_raw(net, skb->sk))
		return NF_ACCEPT;
	return NF_DROP;
}

unsigned int sroce_guard_ipv4(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	if (likely(!sroce_guard_is_process(skb)) ||
	    ip_hdr(skb)->protocol != IPPROTO_UDP)
		return NF_ACCEPT;
	return sroce_guard(skb, ip_hdrlen(skb), state->net);
}

/*
 * No driver looks for RoCE behind extension headers, but a router may take a routing
 * header off, which any process may have in front of its datagrams.
 */
unsigned int sroce_guard_ipv6(void *priv, struct sk_buff *skb,
			      const struct nf_hook_state *state)
{
	int off = sizeof(struct ipv6hdr);
	__be16 frag;
	u8 next;

	if (likely(!sroce_guard_is_process(skb)))
		return NF_ACCEPT;
	next = ipv6_hdr(skb)->nexthdr;
	if (unlikely(ipv6_ext_hdr(next)))
		off = ipv6_skip_exthdr(skb, off, &next, &frag);
	if (off < 0 || next != IPPROTO_UDP)
		return NF_ACCEPT;
	return sroce_guard(skb, off, state->net);
}
