#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# SMC-R: a TCP program whose data goes over RDMA.
. "$(dirname "$0")/lib.sh"
. "$SELF/storage/smc_lib.sh"
need_both

links_up 1
check "physical networks, an EID" 20 smc_talk setup si0 rsi0 st0 rst0
check "server" 20 target_up
talk_all
fallbacks_at_most 0
check "a device removed and made again" 60 device_again rsi0 si0 "$INI"
before=$(sent rsi0)
talk_again
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
check "the server was there to the end" 20 target_down
check "the module unloads" 60 modprobe -r smc_diag smc
ktap_end
