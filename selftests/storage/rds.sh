#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# RDS over its "ib" transport: messages of all sizes both ways, RDMA both ways, a link that fails.
. "$(dirname "$0")/lib.sh"

need rds rds_rdma
need_program python3

links_up 1
before=$(sent rsi0)
talk() { python3 "$SELF/storage/rds_talk.py" "$INI" "$TGT" "$@"; }
check "ping" 30 talk ping
check "messages of 1 byte to 1 MiB" 60 talk sizes
check "a stream of messages both ways" 60 talk stream 4000
check "RDMA WRITE and READ of the peer's memory" 60 talk rdma
link_flap 0 2 &
check "a stream while the link fails" 60 talk stream 20000
wait
check "a device removed and made again" 60 device_again rsi0 si0 $INI
before=$(sent rsi0)
check "a stream after that" 60 talk stream 4000
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
check "the module unloads" 60 rmmod rds_rdma
rmmod rds 2>/dev/null
ktap_end
