#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The state machine of queue pairs and every kind of error: on one device, and between two hosts.
. "$(dirname "$0")/lib.sh"

devices_up 9000
two_ways qpstate
ktap_end
