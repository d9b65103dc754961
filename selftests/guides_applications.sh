#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The guide about applications, of which nothing is left out for want of a program; guides.sh has more. Wants what lab-with
# installs for the tests in applications/.
export NOTHING_LACKS=1 GUIDES=applications
exec bash "$(dirname "$0")/guides.sh"
