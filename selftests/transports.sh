#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Unreliable connections, shared receive queues and extended reliable connections, by a program of our own: on one
# device, and between two hosts.
. "$(dirname "$0")/lib.sh"

devices_up 9000
two_ways transports
ktap_end
