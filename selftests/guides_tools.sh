#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The guides whose commands want programs that the lab's root does not have, or a kernel with huge pages: none of these is
# left out for want of one. "tools.packages" says for lab-with which these are.
export NOTHING_LACKS=1
: "${GUIDES:=tracing containers tuning}"
export GUIDES
exec bash "$(dirname "$0")/guides.sh"
