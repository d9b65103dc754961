# SPDX-License-Identifier: GPL-2.0
# Targets of the lab (Documentation/lab.md); included by the Makefile at the top.

LAB := $(dir $(lastword $(MAKEFILE_LIST)))

.PHONY: lab shell qemu-shell

# Everything that the lab caches: needs a network, takes half an hour on two processors
lab:
	$(LAB)uml-kernel plain
	$(LAB)root bookworm
	$(LAB)root sid
	$(LAB)debian-kernel newest
	$(LAB)uml-kernel sanitizer

shell:
	$(LAB)shell --build

qemu-shell:
	$(LAB)shell --build qemu
