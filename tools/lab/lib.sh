# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Functions that every command of the lab shares.  Sourced, never run.

LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # used by those who source this
TOP=$(cd "$LAB/../.." && pwd)
CACHE=${SROCE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sroce}

# Standard output carries results (a path, a test's output); talk goes to standard error.
say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# shellcheck disable=SC2120 # the files are optional
# hash FILE... : a short name for their contents; with no file, for standard input
hash() { cat -- "$@" | sha256sum | cut -c1-12; }

# timed TEXT COMMAND... : say what is done and how long it took.
# The output goes to a log, of which the end is shown when the command fails.
timed() {
	local text=$1 start=$SECONDS log status
	shift
	mkdir -p "$CACHE/logs"
	log=$CACHE/logs/$(printf '%s' "$text" | tr -c 'a-zA-Z0-9.' -).$$.log
	say "$text ..."
	# Not as a condition: that would switch off "set -e" inside a function that is timed.
	set +e
	(
		set -e
		"$@"
	) >"$log" 2>&1 </dev/null
	status=$?
	set -e
	if [ $status -ne 0 ]; then
		tail -n 40 "$log" >&2
		die "$text FAILED after $((SECONDS - start)) s; everything it said: $log"
	fi
	rm -f "$log"
	say "$text: $((SECONDS - start)) s"
}

# cached DIR COMMAND... : unless DIR exists, run "COMMAND... TEMPORARY" and rename TEMPORARY to DIR.
# A failed or killed build never looks like a good one, and of two callers one waits for the other.
cached() {
	local dir=$1 lock
	shift
	[ -d "$dir" ] && return
	mkdir -p "$(dirname "$dir")"
	exec {lock}>"$dir.lock"
	flock "$lock"
	if [ ! -d "$dir" ]; then
		rm -rf --one-file-system "$dir.tmp"
		mkdir "$dir.tmp"
		# Not on the left of && or ||: that would switch off "set -e" inside.
		"$@" "$dir.tmp" {lock}>&-
		mv "$dir.tmp" "$dir"
	fi
	exec {lock}>&-
}

# emulated_clock : kernel parameters for a machine that QEMU emulates.  Its time stamp counter is this
# machine's, but a busy machine makes the guest measure its rate wrongly, up to a hundredfold.  And the
# kernel patches its code for the clock while it boots, which the emulation of several processors does
# not always survive: they are switched on later (guest-init).
emulated_clock() {
	local program
	program=$CACHE/tsc-khz-$(hash "$LAB/tsc-khz.c")
	if [ ! -x "$program" ]; then
		gcc -O2 -o "$program.$$" "$LAB/tsc-khz.c"
		mv "$program.$$" "$program"
	fi
	echo "maxcpus=1 tsc=nowatchdog tsc_early_khz=$("$program")"
}

# need_packages PACKAGE... : install on this machine what is missing
need_packages() {
	local p missing=() lock
	for p; do
		[ "$(dpkg-query -Wf '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return
	mkdir -p "$CACHE"
	exec {lock}>"$CACHE/apt.lock"
	flock "$lock"
	timed "apt-get update" apt-get -q update
	timed "apt-get install ${missing[*]}" \
		env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"
	exec {lock}>&-
}

# mirror : the address of the Debian archive that this machine is configured to use
mirror() {
	local site
	# shellcheck disable=SC2016 # $(SITE) is apt's
	site=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
	echo "${site:-http://deb.debian.org/debian}"
}

# apt_options : this machine's apt settings that matter for reaching the archive, one per line.
# The other suites may be frozen copies, so the age of their index is not checked.
apt_options() {
	apt-config dump | grep -E '^Acquire::(https?::)?(Proxy|Check-Date)' || true
	echo 'Acquire::Check-Valid-Until "false";'
}

# apt_suite SUITE COMMAND... : apt with the index of another suite, kept apart from this machine's own.
# That of SUITE+ARCHITECTURE has the packages of another architecture, too, as NAME:ARCHITECTURE.
apt_suite() {
	local index=$1 suite=${1%+*} dir=$CACHE/apt/$1 lock
	shift
	local apt=(-q -o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$dir/lists" -o APT::Sandbox::User=root
		-o Acquire::Check-Valid-Until=false)
	[ "$index" = "$suite" ] ||
		apt+=(-o "APT::Architectures::=$(dpkg --print-architecture)" -o "APT::Architectures::=${index##*+}")
	if [ ! -e "$dir/done" ]; then
		mkdir -p "$dir/lists/partial"
		exec {lock}>"$dir.lock"
		flock "$lock"
		if [ ! -e "$dir/done" ]; then
			printf 'deb %s %s main\ndeb-src %s %s main\n' "$(mirror)" "$suite" "$(mirror)" "$suite" >"$dir/sources.list"
			timed "index of $index" apt-get "${apt[@]}" update
			touch "$dir/done"
		fi
		exec {lock}>&-
	fi
	case $1 in
	apt-get | apt-cache) "$1" "${apt[@]}" "${@:2}" ;;
	*) die "apt_suite: $1?" ;;
	esac
}

# remembered SUITE NAME COMMAND... : its output, asked only once for each copy of the suite's index
remembered() {
	local answer=$CACHE/apt/$1/$2
	shift 2
	if [ ! -s "$answer" ]; then
		mkdir -p "$(dirname "$answer")"
		"$@" >"$answer.$$"
		mv "$answer.$$" "$answer"
	fi
	cat "$answer"
}

# foreign KIND : of a machine: set "arch" to its architecture (that of one with larger pages, as arm64-16k, too), "suite" to that of its kernel and root, "gnu" to what its compiler's name begins with,
# "cpu" to what cmake calls the processor and "libs" to where its libraries are
# shellcheck disable=SC2034 # used by those who source this
foreign() {
	arch=${1%-*k} suite=trixie
	case $arch in
	arm64) gnu=aarch64-linux-gnu ;;
	# The archive has sid's whole, but of trixie's point releases not everything
	s390x) gnu=s390x-linux-gnu suite=sid ;;
	i386) gnu=i686-linux-gnu ;;
	*) die "no architecture '$arch'" ;;
	esac
	cpu=${gnu%%-*} libs=usr/lib/${gnu/#i686/i386}
}

# build_dir : where the things built from this checkout go, one folder per target
build_dir() { echo "$CACHE/build/$(hash <<<"$TOP")"; }
