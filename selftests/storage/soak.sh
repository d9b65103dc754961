#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The soak of soak_lib.sh, both ends in one kernel.
. "$(dirname "$0")/lib.sh"
. "$SELF/storage/soak_lib.sh"
need_both

links_up 1
ram_disk_ready || bail "no RAM disk"
soak
ktap_end
