# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# The selftests in the lab; included by the Makefile at the top.
#	make selftests-uml [DRIVER=rxe] [SET=full] [TESTS="verify link"]
# Between two virtual machines with Debian's kernel:
#	make selftests-storage [SET=full] [PROTOCOLS="nvme soak srp"]

.PHONY: selftests-build selftests-uml selftests-sanitizer selftests-storage

TESTS_SET := $(or $(SET),quick)

selftests-build:
	tools/lab/build-provider
	selftests/lab-build

selftests-uml: selftests-build
	tools/lab/build-module uml
	tools/lab/uml --timeout 3600 selftests/lab-guest DRIVER=$(or $(DRIVER),sroce) $(TESTS_SET) $(TESTS)

selftests-sanitizer: selftests-build
	tools/lab/build-module uml-sanitizer
	tools/lab/uml --sanitizer --timeout 7200 selftests/lab-guest DRIVER=$(or $(DRIVER),sroce) $(TESTS_SET) $(TESTS)

selftests-storage: selftests-build
	tools/lab/build-module 6.12
	tools/lab/qemu --timeout 7200 --links 2 --pair selftests/lab-pair-storage selftests/lab-pair-storage \
		SET=$(TESTS_SET) $(PROTOCOLS)
