# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# What tools/test-packages and tools/test-rpm look at where the packages are installed.  Sourced, never run.

# fresh_root SUITE : the folder of a Debian that has apt, systemd, udev and a kernel, and what these want. The lab's own roots
# have compilers, headers and much else that a package could want and not say.
fresh_root() {
	local dir packages=systemd-sysv,udev,linux-image-amd64
	dir=$CACHE/root/fresh-$1-$(hash <<<"$packages")
	need_packages mmdebstrap debian-archive-keyring
	cached "$dir" make_fresh_root "$1" "$packages" >&2
	echo "$dir"
}
# shellcheck disable=SC2317 # called by cached
make_fresh_root() {
	apt_options >"$3.apt"
	# What has no initramfs is never booted.
	timed "a fresh Debian $1" env INITRD=No mmdebstrap --mode=root --variant=minbase --aptopt="$3.apt" --include="$2" \
		--components=main "$1" "$3" "$(mirror)"
	rm -f "$3.apt"
}

# package_common : the part that they share, with the VERSION that is meant, for a script that runs there
package_common() {
	sed -n 's/^PACKAGE_VERSION="*\([^"]*\)"*$/VERSION=\1/p' "$TOP/dkms.conf"
	cat <<'END_COMMON'
set -euo pipefail
say() { printf 'packages: %s\n' "$*"; }
die() { say "$*"; exit 1; }
newest_kernel() { (cd /lib/modules && printf '%s\n' *) | sort -V | tail -n 1; }
kernel=$(newest_kernel)
# provider_fits : libibverbs would load it
provider_fits() {
	local plugin
	[ -e /etc/libibverbs.d/sroce.driver ] || die "libibverbs is not told of the provider"
	plugin=$(dirname "$(ldconfig -p | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -n 1)")/libibverbs
	# libibverbs names the version that it loads in its own providers' names
	[ "$(basename "$plugin"/libsroce-rdmav*.so | tr -dc 0-9)" = "$(basename "$plugin"/librxe-rdmav*.so | tr -dc 0-9)" ] ||
		die "the provider's name does not fit"
	! ldd -r "$plugin"/libsroce-rdmav*.so 2>&1 | grep -E 'undefined|not found' || die "the provider lacks symbols"
}
# installed [without-provider] : module, provider and tools are there, for this kernel and this libibverbs
installed() {
	local by
	for by in sroce rdma-link-sroce; do
		modprobe -n --show-depends -S "$kernel" "$by" | grep -q '/sroce\.ko' || die "modprobe $by finds nothing"
	done
	[ "${1:-}" = without-provider ] || provider_fits
	tools_work
	# Debian 12's has no such command
	! udevadm verify --help >/dev/null 2>&1 || udevadm verify /usr/lib/udev/rules.d/90-sroce.rules >/dev/null ||
		die "udev does not like the rule"
}
# tools_work : what an administrator calls says what there is to say
tools_work() {
	[ -x /usr/sbin/sroce-netdev ]
	# There is no device here: it has something to say, and it can be read
	sroce-check --json >/tmp/check || [ $? -le 2 ] || die "sroce-check fails"
	python3 -m json.tool /tmp/check >/dev/null || die "sroce-check does not work"
	sroce-top --json -n 1 -d 0.1 | python3 -m json.tool >/dev/null || die "sroce-top does not work"
	sroce-metrics | grep -qx 'sroce_devices 0' || die "sroce-metrics does not work"
	rm -f /tmp/check
}
# by_dkms VERSION : it has installed this version of the module, and knows of no other
by_dkms() {
	dkms status -k "$kernel" sroce/"$1" | grep -q installed || die "DKMS has not installed version $1: $(dkms status)"
	! dkms status | grep '^sroce' | grep -v "^sroce/$1," || die "another version is left: $(dkms status)"
}
# signed_by_dkms : the module that modprobe takes is signed with DKMS's own key
signed_by_dkms() {
	local serial
	serial=$(openssl x509 -inform DER -in /var/lib/dkms/mok.pub -noout -serial) || die "DKMS has no key"
	[ "serial=$(modinfo -k "$kernel" -F sig_key sroce | tr -d :)" = "$serial" ] ||
		die "not signed with DKMS's key ($serial): $(modinfo -k "$kernel" sroce | grep sig)"
}
# files : all that there are, but for logs, lists of packages and what a run of depmod, ldconfig or apt makes anew
files() {
	find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /run -o -path /given -o -path /var/log -o -path /var/cache \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /root \) -prune -o -print | LC_ALL=C sort
}
# nothing_left PATTERN : the files are those that /before lists, but for these, and what DKMS makes with the first module that
# it signs: its key, and the folder that it is in
nothing_left() {
	local changed
	files >/after
	changed=$(diff /before /after | grep '^[<>]' | grep -vE " (/(before|after)|/var/lib/dkms(/mok\.(key|pub))?|$1)\$" || true)
	[ -z "$changed" ] || die "this is what has changed: $changed"
	say "nothing is left"
}
END_COMMON
}
