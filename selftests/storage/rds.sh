#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# RDS over its "ib" transport: messages of all sizes both ways, RDMA both ways, a link that fails.
. "$(dirname "$0")/lib.sh"
. "$SELF/storage/rds_lib.sh"
need_both

links_up 1
before=$(sent rsi0)
check "server" 20 target_up
talk_all
link_flap 0 2 &
flap=$!
check "a stream while the link fails" 60 talk stream 20000
wait $flap
check "a device removed and made again" 60 device_again rsi0 si0 "$INI"
before=$(sent rsi0)
check "a stream after that" 60 talk stream 4000
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
check "the server was there to the end" 20 target_down
# Unloading the module while devices have connections may corrupt RDS's list of those (storage.md)
links_down
sleep $((2 * SLOW))
check "the module unloads" 60 rmmod rds_rdma
rmmod rds 2>/dev/null
ktap_end
