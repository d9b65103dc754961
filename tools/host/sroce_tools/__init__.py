# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What sroce-check and sroce-top have in common. Python 3.9 and nothing beside it."""
