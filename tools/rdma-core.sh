# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# Building our provider in a source tree of rdma-core.  Sourced, never run.  libibverbs loads only
# providers that were made from its own version.

# rdma_core_version TREE : as "56.1"
rdma_core_version() { sed -n 's/^set(PACKAGE_VERSION "\(.*\)")$/\1/p' "$1/CMakeLists.txt"; }

# rdma_core_target TREE : the name of our provider there, as "sroce-rdmav34"
rdma_core_target() { sed -n 's/^set(IBVERBS_PABI_VERSION "\(.*\)")$/sroce-rdmav\1/p' "$1/CMakeLists.txt"; }

# rdma_core_download DIR APT-GET ARGUMENT... : Debian's source of the version that the arguments name.
# The signed description (.dsc) of a superseded version may be gone from the archive, so apt-get source
# could fail; the index has the upstream archive's address and checksum all the same.
rdma_core_download() {
	local dir=$1 uri sum
	read -r uri _ _ sum < <("${@:2}" | grep '\.orig\.tar\.[a-z0-9]* ')
	[ -n "$uri" ] || return
	uri=${uri//\'/}
	/usr/lib/apt/apt-helper download-file "$uri" "$dir/orig.tar" "$sum" || return
	tar -xf "$dir/orig.tar" -C "$dir" --strip-components=1 || return
	rm "$dir/orig.tar"
}

# rdma_core_add TREE : what rdma-core wants to know about a provider, next to its neighbour in the alphabet
rdma_core_add() {
	grep -q '^add_subdirectory(providers/sroce)' "$1/CMakeLists.txt" ||
		sed -i 's|^add_subdirectory(providers/siw).*|&\nadd_subdirectory(providers/sroce)|' "$1/CMakeLists.txt"
	grep -q '^  rdma/sroce-abi.h' "$1/kernel-headers/CMakeLists.txt" ||
		sed -i 's|^  rdma/siw-abi.h$|&\n  rdma/sroce-abi.h|' "$1/kernel-headers/CMakeLists.txt"
}

# rdma_core_update TREE TOP : the provider as it is in this checkout
rdma_core_update() {
	local tree=$1 top=$2 file
	mkdir -p "$tree/providers/sroce"
	# Files are kept by content: a newer date alone would rebuild all that includes them.
	(cd "$top/userspace-provider" && find . -type f) | while read -r file; do
		mkdir -p "$tree/providers/sroce/$(dirname "$file")"
		rdma_core_copy "$top/userspace-provider/$file" "$tree/providers/sroce/$file"
	done
	(cd "$tree/providers/sroce" && find . -type f) | while read -r file; do
		[ -e "$top/userspace-provider/$file" ] || rm "$tree/providers/sroce/$file"
	done
	rdma_core_copy "$top/include/uapi/rdma/sroce-abi.h" "$tree/kernel-headers/rdma/sroce-abi.h"
}
rdma_core_copy() { cmp -s "$1" "$2" || cp "$1" "$2"; }

# rdma_core_configure TREE BUILD [OPTION...] : needs cmake and what rdma-core needs itself.  Without RPATH, because what is
# installed would look for libibverbs in the folder of the build first, which may be anybody's one day.
rdma_core_configure() {
	local tree=$1 build=$2
	shift 2
	[ ! -e "$build/CMakeCache.txt" ] || return 0
	cmake --log-level=WARNING -Wno-dev -DCMAKE_BUILD_TYPE=RelWithDebInfo -DNO_MAN_PAGES=1 \
		-DNO_PYVERBS=1 -DCMAKE_SKIP_RPATH=1 -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_EXPORT_COMPILE_COMMANDS=1 "$@" -S "$tree" -B "$build"
}

# rdma_core_build TREE BUILD : our provider, which then is in BUILD/lib
rdma_core_build() { cmake --build "$2" --target "$(rdma_core_target "$1")" -- -j"$(nproc)"; }
