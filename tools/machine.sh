# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
# A Debian with the packages as a machine of its own, with a disk, systemd and udev, in QEMU: what tools/test-reboot and
# tools/test-packages share.  Sourced, never run.

# machine_common : functions for a script that runs in the machine, by systemd, after each boot
machine_common() {
	cat <<'END_COMMON'
# within SECONDS COMMAND... : does it succeed by then?
within() {
	local i seconds=$1
	shift
	for ((i = 0; i < 2 * seconds; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.5
	done
	return 1
}
# check WHAT COMMAND... : a result, with $prefix before it; they are counted over all boots
check() {
	local what=$1 number
	shift
	number=$(($(cat /var/lib/results 2>/dev/null || echo 0) + 1))
	echo $number >/var/lib/results
	if "$@"; then echo "ok $number $prefix$what"; return; fi
	echo "not ok $number $prefix$what"
	ip -br addr; rdma link; journalctl -b --no-pager -q -t sroce-netdev -t systemd-networkd -t NetworkManager -t kernel -n 30
}
has() { rdma link show | grep -q "^link $1/1 .* netdev $2 *$"; }
gone() { ! rdma link show | grep -q "^link $1/1 "; }
active() { rdma link show "$1/1" | grep -q 'state ACTIVE'; }
# gid DEVICE ADDRESS : the number of its GID with that IPv4 address
gid() {
	local f
	for f in /sys/class/infiniband/"$1"/ports/1/gids/*; do
		grep -qix "$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${2//./ })" "$f" && basename "$f" && return
	done
	return 1
}
# wire : two devices that reach each other by packets only: wire_a, which sroce.conf names, on wire0 with 10.78.0.1, and
# wire_b on the other end of that veth, in the namespace "peer" with 10.78.0.2
wire() {
	ip netns add peer && ip link add wire0 type veth peer name wire1 netns peer || return
	ip addr add 10.78.0.1/24 dev wire0 && ip link set wire0 up || return
	ip -n peer addr add 10.78.0.2/24 dev wire1 && ip -n peer link set wire1 up && ip -n peer link set lo up || return
	within 30 has wire_a wire0 || return
	ip netns exec peer rdma link add wire_b type sroce netdev wire1 && within 30 active wire_a && within 30 gid wire_a 10.78.0.1 &&
		within 30 gid wire_b 10.78.0.2
}
# crossed : how many bytes have come and gone over wire0
crossed() { echo $(($(cat /sys/class/net/wire0/statistics/tx_bytes) + $(cat /sys/class/net/wire0/statistics/rx_bytes))); }
# packets BYTES COMMAND... : it succeeds, and so many bytes and more have crossed the wire
packets() {
	local bytes=$1 before
	shift
	before=$(crossed)
	"$@" || return
	[ $(($(crossed) - before)) -ge "$bytes" ] || { echo "only $(($(crossed) - before)) bytes have crossed the wire"; return 1; }
}
# talk SERVER CLIENT : a program over the wire, and its partner in the namespace, as soon as that is listened to
talk() {
	local server
	timeout 200 $1 >/run/server 2>&1 & server=$!
	while sleep 2 && kill -0 $server; do
		timeout 100 ip netns exec peer $2 >/run/client 2>&1 && wait $server && return
	done 2>/dev/null
	cat /run/server /run/client
	return 1
}
pingpong() {
	talk "ibv_rc_pingpong -c -d wire_a -g $(gid wire_a 10.78.0.1) -n 100" \
		"ibv_rc_pingpong -c -d wire_b -g $(gid wire_b 10.78.0.2) -n 100 10.78.0.1"
}
# cut_wire : both devices go with the veth
cut_wire() { ip link del wire0 && ip netns del peer && within 30 gone wire_a && within 30 gone wire_b; }
END_COMMON
}

# machine_service NAME : a unit for the program /usr/local/sbin/NAME, which runs when the machine has booted
machine_service() {
	cat <<END_SERVICE
[Unit]
Description=what has become of the devices after this boot
After=multi-user.target
[Service]
ExecStart=/usr/local/sbin/$1
[Install]
WantedBy=graphical.target multi-user.target
END_SERVICE
}

# machine_made WORK SUITE WITH : a kernel, an initrd and a disk in the folder WORK, from what has changed in a root with these
# packages, which is in WORK/state
machine_made() {
	need_packages qemu-system-x86 e2fsprogs gcc libc6-dev
	# shellcheck disable=SC2016 # for the inner shell
	"$LAB/in-root" ${3:+--with "$3"} --upper "$1/state" --outside "$2" bash -euc '
		chroot "$ROOT" mkinitramfs -o /boot/initrd-test "$(basename "$ROOT"/lib/modules/*)"
		cp -L "$ROOT"/boot/vmlinuz-* "$1/kernel"
		mv "$ROOT/boot/initrd-test" "$1/initrd"
		rm -f "$ROOT/usr/sbin/policy-rc.d"
		mkdir -p "$1/root"
		# Without what is mounted below it
		mount --bind "$ROOT" "$1/root"
		mke2fs -q -t ext4 -d "$1/root" "$1/disk" 6G
		umount "$1/root"' machine "$1"
}

# machine_secure WORK KEY : it will boot with Secure Boot, with firmware that knows no other key than that of this certificate
# (DER).  What firmware does when a person has enrolled a MOK by shim is left out, and so is the kernel's own signature, as
# QEMU changes the kernel's header: the kernel is told that Secure Boot is on, and has the key from the firmware.
# shellcheck disable=SC2016 # for the inner shell
machine_secure() {
	mkdir "$1/firmware"
	cp "$2" "$1/firmware/key.der"
	"$LAB/in-root" --with "ovmf python3-virt-firmware openssl" --bind "$1/firmware=firmware" trixie bash -euc '
		cd /firmware
		openssl x509 -inform DER -in key.der -out key.pem
		owner=$(cat /proc/sys/kernel/random/uuid)
		virt-fw-vars -i /usr/share/OVMF/OVMF_VARS_4M.fd -o variables --set-pk "$owner" key.pem --add-kek "$owner" key.pem \
			--add-db "$owner" key.pem --sb
		cp /usr/share/OVMF/OVMF_CODE_4M.secboot.fd code' >&2
}

# machine_inside NAME WORK LOWER SCRIPT : run WORK/given/SCRIPT as root in the Debian in the folder LOWER, under an overlay that is
# thrown away, with this machine's network.  No service is started there.  What apt has downloaded is kept as NAME.
machine_inside() {
	local packages=$CACHE/apt/install-$1 lock
	mkdir -p "$packages/archives/partial" "$packages/lists/partial" "$2/root" "$2/upper" "$2/upper.work"
	exec {lock}>"$packages.lock"
	flock "$lock"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --propagation private bash -euc '
		mount -t overlay -o "lowerdir=$3,upperdir=$1/upper,workdir=$1/upper.work" overlay "$1/root"
		cd "$1/root"
		mkdir given
		mount -t proc proc proc
		mount --rbind /dev dev
		mount -t tmpfs tmpfs tmp
		mount -t tmpfs tmpfs run
		mount --bind "$1/given" given
		mount --bind "$2/archives" var/cache/apt/archives
		mount --bind "$2/lists" var/lib/apt/lists
		cp --remove-destination -L /etc/resolv.conf /etc/hosts etc/
		printf "#!/bin/sh\nexit 101\n" >usr/sbin/policy-rc.d
		chmod +x usr/sbin/policy-rc.d
		exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 \
			bash "/given/$4" </dev/null' inside "$2" "$packages" "$3" "$4" >&2
	exec {lock}>&-
	rm -rf "${2:?}/upper" "$2/upper.work"
}

# machine_runs WORK SECONDS MORE QEMU-ARGUMENT... : boot it, with MORE for the kernel's command line and the network card $card
# (virtio-net-pci), until it powers itself off; print what its script says on ttyS1, which is KTAP.  It fails unless all results
# are good and the last line is "# the end".
machine_runs() {
	local work=$1 seconds=$2 more=$3
	shift 3
	[ ! -d "$work/firmware" ] || set -- -machine q35,smm=on -global ICH9-LPC.disable_s3=1 \
		-global driver=cfi.pflash01,property=secure,value=on \
		-drive "if=pflash,unit=0,format=raw,readonly=on,file=$work/firmware/code" \
		-drive "if=pflash,unit=1,format=raw,file=$work/firmware/variables" "$@"
	: >"$work/said"
	timeout -s KILL "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 2G -smp 1 -display none -nodefaults \
		-kernel "$work/kernel" -initrd "$work/initrd" -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
		-append "root=/dev/vda rw console=ttyS0 panic=-1 $(emulated_clock) $more" \
		-netdev user,id=n,restrict=on -device "${card:-virtio-net-pci},netdev=n,addr=0x5,romfile=" -serial "file:$work/console" \
		-serial "file:$work/said" "$@" </dev/null || true
	tr -d '\r' <"$work/said"
	if ! grep -q '^# the end' "$work/said"; then
		tail -n 40 "$work/console" | tr -d '\r' | sed 's/^/# console: /'
		echo "not ok 0 the machine has come to its end"
		return 1
	fi
	echo "1..$(grep -cE '^(not )?ok ' "$work/said")"
	! grep -q '^not ok' "$work/said"
}
