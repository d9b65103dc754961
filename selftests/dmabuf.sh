#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Regions of dma-bufs: on one device, and between two hosts. Wants a kernel with CONFIG_UDMABUF.
. "$(dirname "$0")/lib.sh"

[ -e /dev/udmabuf ] || {
	ktap_skip "regions of dma-bufs" "this kernel has no udmabuf"
	ktap_end
}
devices_up 9000
options=
[ "$SET" = full ] || options=-s
two_ways dmabuf 120 $options
ktap_end
