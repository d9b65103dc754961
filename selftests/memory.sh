#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Memory regions and windows: on one device, and between two hosts; and every operation on every kind of memory.
. "$(dirname "$0")/lib.sh"

huge_pages 4
devices_up 9000
two_ways memory
ktap_prefix="kinds: "
two_ways kinds
ktap_end
