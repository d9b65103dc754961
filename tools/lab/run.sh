# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Running a script in virtual machines.  Sourced by the commands that start them, after lib.sh.
#
# Each machine has a folder through which it talks with the outside:
#   settings   what the guest must know, as shell variables
#   status     the exit status of the script, written by the guest as its last act
#   console    the kernel log

# open_lab : make the folder of all that is about to run ("base") and choose the guests' /out ("out")
open_lab() {
	mkdir -p "$CACHE/run" "$(build_dir)"
	# What a killed run could not clean up
	find "$CACHE/run" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
	base=$(mktemp -d "$CACHE/run/XXXXXX")
	trap 'rm -rf "$base"' EXIT
	out=${SROCE_OUT:-$base/out}
	mkdir -p "$out"
	out=$(realpath "$out")
	rm -f "$out"/.barrier-* "$out"/.finished-*
}

# open_run NODE [SCRIPT [ARGUMENT...]] : make the folder of one machine and set "run" to it
open_run() {
	local node=$1
	shift
	run=$base/$node
	mkdir "$run"
	if [ $# -gt 0 ]; then
		[ -f "$1" ] || die "no script '$1'"
		# The guest sees the checkout at /sroce; a script from elsewhere is copied.
		case $(realpath "$1") in
		"$TOP"/*) set -- "/sroce/$(realpath --relative-to="$TOP" "$1")" "${@:2}" ;;
		*) cp "$1" "$run/script" && set -- /lab-run/script "${@:2}" ;;
		esac
	fi
	: >"$run/settings"
	setting node "$node"
	setting command "$@"
	setting checkout "$TOP"
	setting build "$(build_dir)"
	setting out "$out"
	setting mhz "$(sed -n 's/^cpu MHz.*: //p;T;q' /proc/cpuinfo)"
}

# setting NAME VALUE... : a variable for the guest (an array, so that no value or several work too)
setting() {
	local name=$1
	shift
	printf 'lab_%s=(' "$name" >>"$run/settings"
	[ $# -eq 0 ] || printf ' %q' "$@" >>"$run/settings"
	printf ' )\n' >>"$run/settings"
}

# close_run STATUS : of the machine in "run", which the emulator left with STATUS.  Sets "status" to
# the script's exit status, or to one that tells what went wrong instead.
close_run() {
	status=$1
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then # 137: timeout had to kill
		say "time limit reached"
		status=124
	elif [ -e "$run/status" ]; then
		status=$(<"$run/status")
	else
		say "the kernel died"
		status=98
	fi
	if [ "$status" -eq 124 ] || [ "$status" -eq 98 ]; then
		tail -n 60 "$run/console" >&2
	fi
	[ -z "${SROCE_OUT:-}" ] || cp "$run/console" "$out/console-$(basename "$run")"
	if ! "$LAB/scan-log" "$run/console" >&2; then
		say "the script's own exit status was $status"
		[ "$status" -eq 124 ] || [ "$status" -eq 98 ] || status=99
	fi
}
