#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# 9p over RDMA: the kernel's client, and a small server of our own.
. "$(dirname "$0")/lib.sh"
. "$SELF/storage/9p_lib.sh"
need_both

ram_target "server" 30 512
mounted_each
check "the server was there to the end" 20 target_down
check "the module unloads" 30 modprobe -r 9pnet_rdma
ktap_end
