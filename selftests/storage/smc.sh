#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# SMC-R: a TCP program whose data goes over RDMA. That it did not fall back to TCP is seen from what the
# kernel counts.
. "$(dirname "$0")/lib.sh"

need smc
need_program python3

talk() { python3 "$SELF/storage/smc_talk.py" "$@"; }

links_up 1
check "both ends in one physical network, an EID" 20 talk setup si0 rsi0 st0 rst0
before=$(sent rsi0)
check "20 MB to and fro, checksums" 90 talk run $INI $TGT 20000000
notes <"$TMP/out"
check "ten connections at once" 120 talk run $INI $TGT 1000000 10
check "a device removed and made again" 60 device_again rsi0 si0 $INI
before=$(sent rsi0)
check "its physical network" 20 talk setup si0 rsi0 st0 rst0
# The link groups first get their links back
sleep 3
check "20 MB to and fro after that" 90 talk run $INI $TGT 20000000
fallback=$(talk fallbacks)
[ "$fallback" = 0 ]
result $? "no connection fell back to TCP ($fallback)"
[ $(($(sent rsi0) - before)) -gt 1000 ]
result $? "it went over the device ($(($(sent rsi0) - before)) packets)"
check "the module unloads" 60 modprobe -r smc_diag smc
ktap_end
