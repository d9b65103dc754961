# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# One run of a script in a virtual machine: the folder through which the two sides talk.  Sourced
# by the commands that start machines, after lib.sh.
#
#   settings   what the guest must know, as shell variables
#   status     the exit status of the script, written by the guest as its last act
#   console    the kernel log

# setting NAME VALUE... : a variable for the guest (an array, so that no value or several work too)
setting() {
	local name=$1
	shift
	printf 'lab_%s=(' "$name" >>"$run/settings"
	[ $# -eq 0 ] || printf ' %q' "$@" >>"$run/settings"
	printf ' )\n' >>"$run/settings"
}

# open_run [SCRIPT [ARGUMENT...]] : make the folder, set "run" and "out"
open_run() {
	mkdir -p "$CACHE/run" "$(build_dir)"
	# What a killed run could not clean up
	find "$CACHE/run" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
	run=$(mktemp -d "$CACHE/run/XXXXXX")
	trap 'rm -rf "$run"' EXIT
	out=${SROCE_OUT:-$run/out}
	mkdir -p "$out"
	out=$(realpath "$out")
	if [ $# -gt 0 ]; then
		[ -f "$1" ] || die "no script '$1'"
		# The guest sees the checkout at /sroce; a script from elsewhere is copied.
		case $(realpath "$1") in
		"$TOP"/*) set -- "/sroce/$(realpath --relative-to="$TOP" "$1")" "${@:2}" ;;
		*) cp "$1" "$run/script" && set -- /lab-run/script "${@:2}" ;;
		esac
	fi
	: >"$run/settings"
	setting command "$@"
	setting checkout "$TOP"
	setting build "$(build_dir)"
	setting out "$out"
}

# close_run STATUS : end with the script's exit status, or with one that tells what went wrong instead
close_run() {
	local status=$1
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
	[ -z "${SROCE_OUT:-}" ] || cp "$run/console" "$out/console"
	if ! "$LAB/scan-log" "$run/console" >&2; then
		say "the script's own exit status was $status"
		[ "$status" -eq 124 ] || [ "$status" -eq 98 ] || status=99
	fi
	exit "$status"
}
