#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Doorbells from several processors while the completion queues are resized and the queue pairs destroyed: on one
# device, and between two hosts. What goes wrong is in the kernel log, which is looked at here, too.
. "$(dirname "$0")/lib.sh"

if [ "$DRIVER" != sroce ]; then
	ktap_skip "race" "it rings sroce's doorbell"
	ktap_end
fi

less=-s
[ "$SET" = quick ] || less=
devices_up 9000
before=$(splats)
# shellcheck disable=SC2086 # an option or nothing
two_ways race 90 $less
unharmed "$before"
