#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# SMC-R: a TCP program whose data goes over RDMA.
. "$(dirname "$0")/lib.sh"
. "$SELF/storage/smc_lib.sh"
need_both

links_up 1
check "physical networks, an EID" 20 smc_talk setup si0 rsi0 st0 rst0
before=$(sent rsi0)
check "server" 20 target_up
talk_all
check "a device removed and made again" 60 device_again rsi0 si0 $INI
before=$(sent rsi0)
check "its physical network, again" 20 smc_talk setup si0 rsi0 st0 rst0
# The link groups first get their links back
sleep $((3 * SLOW))
check "20 MB to and fro after that" 90 smc_talk run $INI $TGT 20000000
no_fallbacks
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
check "the server was there to the end" 20 target_down
check "the module unloads" 60 modprobe -r smc_diag smc
ktap_end
