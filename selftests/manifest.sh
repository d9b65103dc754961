#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# manifest.sh list SET [OTHER] : the names of the tests of a set, one a line, in the order in which they run; those that are
#	not in the other set, too
# manifest.sh table       : all of the manifest as Markdown, for Documentation/testing.md
# manifest.sh update FILE : put the table into FILE, between its two comments
# manifest.sh check FILE  : is it in FILE, and has every script its line in the manifest, and the reverse?
# manifest.sh files TEST... : the files that tests are made of, from the top of the checkout: their scripts, and what
#	those name (scripts, lists, programs), and the sources of the programs; all of tools/host or Documentation
#
# The manifest says itself how it is to be read. Nothing else of the checkout is needed for "list".
cd "$(dirname "$0")" || exit 1

die() { echo "manifest.sh: $*" >&2; exit 1; }

# list SET [OTHER] : status 1 if there is none in it, so that a wrong name does not stand for all tests
list() {
	awk -v set="$1" -v other="${2:-}" '
		/^[#@]/ || NF < 4 { next }
		{
			n = split($2, sets, ",")
			late = not = -1
			for (i = 1; i <= n; i++) {
				word = sets[i]
				signs = gsub(/\+/, "", word)
				if (word == set)
					late = signs
				if (word == other)
					not = 1
			}
			if (late < 0 || not > 0)
				next
			names[late] = names[late] $1 "\n"
			if (late > last)
				last = late
			found = 1
		}
		END {
			for (late = 0; late <= last; late++)
				printf "%s", names[late]
			exit !found
		}' manifest || die "no test is in a set '$1'${2:+, but not in $2}"
}

table() {
	awk '
		/^#/ || NF == 0 { next }
		{ words = /^@/ ? 1 : 3 }
		{ text = $0; for (i = 0; i < words; i++) sub(/^[^ ]+ +/, "", text) }
		/^@/ { legend = legend "| " substr($1, 2) " | " text " |\n"; next }
		{ gsub(/\+/, "", $2); gsub(/,/, ", ", $2); tests = tests "| `" $1 "` | " $2 " | " $3 " | " text " |\n" }
		END {
			printf "| test | sets | s | what |\n|---|---|---|---|\n%s\n", tests
			printf "| set | where it runs |\n|---|---|\n%s", legend
		}' manifest
}

# renewed FILE : FILE as it should be
renewed() {
	[ "$(grep -cxE '<!-- selftests/manifest: (begin|end) -->' "$1")" = 2 ] || die "$1 has no place for the table"
	table | sed -e '/^<!-- selftests\/manifest: begin -->$/,/^<!-- selftests\/manifest: end -->$/ { //!d }' \
		-e '/^<!-- selftests\/manifest: begin -->$/ r /dev/stdin' "$1"
}

# check FILE : every fault, one a line
check() {
	local file=$1 script name new TMP
	TMP=$(mktemp -d)
	trap 'rm -rf "$TMP"' RETURN
	# A test can be started; what is sourced has no first line that says with what.
	for script in *.sh storage/*.sh; do
		name=${script%.sh}
		case $name in run_selftests | manifest) continue ;; esac
		[[ $(head -n 1 "$script") == '#!'* ]] || continue
		grep -q "^$name " manifest || echo "$script is not in the manifest"
	done
	awk '
		/^#/ || NF == 0 { next }
		/^@/ { where[substr($1, 2)] = 1; next }
		NF < 4 || $3 !~ /^([0-9]+|-)$/ { print $1 ": not of the form TEST SETS SECONDS WHAT"; next }
		seen[$1]++ { print $1 " is there twice" }
		{
			n = split($2, sets, ",")
			for (i = 1; i <= n; i++) {
				sub(/\++$/, "", sets[i])
				if (!(sets[i] in where))
					print $1 ": no set \047" sets[i] "\047"
				used[sets[i]] = 1
			}
		}
		END { for (set in where) if (!(set in used)) print "no test is in the set \047" set "\047" }' manifest
	while read -r name _; do
		[[ -z $name || $name == [#@]* || -f $name.sh ]] || echo "$name has no script"
	done <manifest
	# A test whose program is in none of its files would count as passed when the program changes
	awk '/^TEST_GEN_FILES/ { sub(/.*=/, ""); more = 1 }
		more { for (i = 1; i <= NF; i++) if ($i ~ /^[a-z]/) print $i ".c"; more = /\\$/ }' Makefile | sort >"$TMP/programs"
	# shellcheck disable=SC2046 # names
	files $(grep -oE '^[a-z][a-z0-9_/]*' manifest) | sed 's|.*/||' | sort >"$TMP/used"
	comm -23 "$TMP/programs" "$TMP/used" | sed 's/$/ is among the files of no test/'
	new=$(renewed "$file") || return
	diff -U 0 --label "${file##*/}" --label "${file##*/}, as the manifest has it" "$file" <(printf '%s\n' "$new") ||
		echo "the table differs: selftests/manifest.sh update brings it up to date"
}

# files TEST... : a file is named by its name with what is behind the dot, a program by "program NAME" or "two_ways NAME"
# (lib.sh) and, with the sources that it is linked with, in the Makefile
files() {
	# shellcheck disable=SC2016 # for awk
	printf '%s\n' "${@/%/.sh}" | awk -v makefile=Makefile '
		function take(path) { if (!(path in taken)) { taken[path] = 1; todo[++last] = path } }
		function find(name) { take((dir name) in there ? dir name : byname[name]) }
		function names(text, n, words, i) {
			n = split(text, words, /[^A-Za-z0-9_.\/-]+/)
			for (i = 1; i <= n; i++) {
				if (words[i] == "program" || words[i] == "two_ways")
					find(words[i + 1] ".c")
				else if (words[i] ~ /(^|\/)tools\/host\//)
					host = 1
				else if (words[i] ~ /\.\.\/Documentation$/)
					documents = 1
				sub(/.*\//, "", words[i])
				sub(/\.$/, "", words[i])
				if (words[i] in byname)
					find(words[i])
			}
		}
		FILENAME == "-" { if ($0 != ".sh" && $0 != "") take($0); next }
		FILENAME == makefile { if (/^\$\(OUT\)/) linked[++rules] = $0; next }
		{ name = $0; sub(/.*\//, "", name); byname[name] = $0; there[$0] = 1 }
		END {
			byname[""] = ""
			taken[""] = 1
			take("lib.sh")
			for (first = 1; first <= last; first++) {
				path = todo[first]
				if (path ~ /\.h$/)
					continue
				dir = path
				sub(/[^\/]*$/, "", dir)
				while ((getline line <path) > 0)
					names(line)
				close(path)
				if (path !~ /\.c$/)
					continue
				program = path
				sub(/.*\//, "", program)
				sub(/\.c$/, "", program)
				for (i = 1; i <= rules; i++)
					if (linked[i] ~ "/(" program "|%)( |:)")
						names(linked[i])
			}
			for (i = 1; i <= last; i++)
				print "selftests/" todo[i]
			if (host)
				print "tools/host"
			if (documents)
				print "README.md\nDocumentation"
		}' - Makefile <(find . -type f ! -name '*.md' ! -name Makefile ! -name manifest ! -name '*.mk' -printf '%P\n') | sort
}

# A path that is given is meant from where the caller stands.
file=${2:-}
[[ $file == /* ]] || file=$OLDPWD/$file
[ "${1:-}" != files ] || { files "${@:2}"; exit; }
case ${1:-}:$# in
list:2) list "$2" ;;
list:3)
	list "$3" >/dev/null && list "$2" "$3"
	;;
table:1) table ;;
update:2)
	new=$(renewed "$file") || exit
	printf '%s\n' "$new" >"$file"
	;;
check:2)
	faults=$(check "$file" 2>&1)
	[ -z "$faults" ] || { echo "$faults"; exit 1; }
	echo "$(grep -c '^[a-z0-9]' manifest) tests"
	;;
*) die "usage: manifest.sh list SET [OTHER] | table | update FILE | check FILE | files TEST..." ;;
esac
