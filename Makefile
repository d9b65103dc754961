# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# Building and installing outside the kernel tree, and the commands of the lab.
# The kernel's own make reads Kbuild instead of this file.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
DESTDIR ?=

.PHONY: all modules provider modules_install install uninstall clean help

all: modules provider

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

provider:
	tools/provider build

modules_install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

install:
	tools/provider install "$(DESTDIR)"
	tools/host/install "$(DESTDIR)"

uninstall:
	tools/provider uninstall "$(DESTDIR)"
	tools/host/install --remove "$(DESTDIR)"

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
	rm -rf build

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make                    build the module for this kernel (or KDIR=...) and the provider
## make modules_install    put the module where modprobe finds it
## make install            put the provider where libibverbs finds it, and sroce-netdev and its configuration
## make deb                build packages of all of it for Debian 13, or with SUITE=bookworm for 12, SUITE=sid for unstable
## make rpm                build the packages of sroce.spec with Debian's rpm, to test them
## make demo               show it working between two virtual machines
## make demo-storage       show a disk exported over NVMe-oF from one to the other
## make test               run every test in the lab; ends with N passed, N failed, N skipped
## make test-full         the same with everything that takes long
## make bench              sroce beside rdma_rxe, siw and TCP
## make shell              a prompt in the lab with the device ready

-include tools/lab/lab.mk
-include selftests/tests.mk

.PHONY: demo demo-storage test test-full bench deb rpm
deb:
	tools/package deb $(or $(SUITE),trixie)
rpm:
	tools/package rpm
demo:
	tools/demo
demo-storage:
	tools/demo --storage
test:
	tools/test quick
test-full:
	tools/test full
bench:
	tools/bench/bench $(BENCH)
