#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The guide about watching, of which nothing is left out for want of a program; guides.sh has more. Wants what "watching.packages"
# says for lab-with.
export NOTHING_LACKS=1 GUIDES=watching
exec bash "$(dirname "$0")/guides.sh"
