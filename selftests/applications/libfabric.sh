#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# libfabric's fi_pingpong over its verbs provider, data checked: connected endpoints, and reliable and plain datagrams by
# way of the providers that make them of connections (ofi_rxm) and of queue pairs for datagrams (ofi_rxd).
. "$(dirname "$0")/lib.sh"
needs "libfabric" fi_pingpong fi_info

# The control channel is TCP's
ready() { on_a grep -q ' *[0-9]*: [0-9A-F]*:B99E ' /proc/net/tcp /proc/net/tcp6; }

# pingpong NAME OPTION... : FI_VERBS_IFACE names the netdev, as its manual page says
pingpong() {
	local name=$1 options=${*:2}
	READY=ready over_wire 50000 pair "$name" 60 \
		"env FI_VERBS_IFACE=veth0 FI_VERBS_DEVICE_NAME=$DEV_A fi_pingpong $options" \
		"env FI_VERBS_IFACE=veth0 FI_VERBS_DEVICE_NAME=$DEV_B fi_pingpong $options $IP_A" ||
		result 1 "$name: by RDMA"
	grep -aE '^(bytes|[0-9])' "$TMP/client" | notes 12
}

devices_up 9000
iterations=50
[ "$SET" = full ] && iterations=500
[ -n "$SHORT" ] && iterations=10
pingpong "connected" -p verbs -e msg -c -I $iterations
pingpong "reliable datagrams over connections" -p "'verbs;ofi_rxm'" -e rdm -c -I $iterations
pingpong "reliable datagrams over datagrams" -p "'verbs;ofi_rxd'" -e rdm -c -I $iterations
for layer in rxm rxd; do
	pingpong "tagged messages, ofi_$layer" -p "'verbs;ofi_$layer'" -e rdm -m tagged -c -I $iterations
done
pingpong "datagrams" -p verbs -e dgram -c -I $((iterations > 60 ? iterations : 60)) -S 1024
ktap_end
