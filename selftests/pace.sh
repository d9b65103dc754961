#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Rate limits of queue pairs: on one device, and between two hosts.
. "$(dirname "$0")/lib.sh"

devices_up 1500
two_ways pace
ktap_end
