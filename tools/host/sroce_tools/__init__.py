# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What sroce-check, sroce-top and sroce-metrics have in common. Python 3.8 and nothing beside it."""
