#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Tag matching on shared receive queues: on one device, and between two hosts.
. "$(dirname "$0")/lib.sh"

devices_up 9000
two_ways tm
ktap_end
