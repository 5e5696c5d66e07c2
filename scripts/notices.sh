#!/bin/sh
# Writes THIRD_PARTY_NOTICES.md: what is inside the two binaries besides our own
# code, and under which licence. Go modules come from `go list -deps` of both
# commands, npm packages from the table of fetch.sh, and what is inside those
# (scripts/licenses/) from here. An unknown licence is an error: a person has to read it.
#
#   notices.sh           write the file
#   notices.sh --check   fail if the committed file differs
set -eu
export LC_ALL=C

mode=${1-}
cd "$(dirname -- "$0")/.."
out=THIRD_PARTY_NOTICES.md
fetch=cmd/qjs-worker/internal/assets/fetch.sh
platforms='linux/amd64 linux/arm64 darwin/arm64'

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
	printf 'notices.sh: error: %s\n' "$1" >&2
	exit 1
}

# licence_of FILE names the licence whose text is in FILE.
licence_of() {
	text=$(tr -s '[:space:]' ' ' <"$1")
	case $text in
	*'Mozilla Public License'*'ersion 2.0'*) echo MPL-2.0 ;;
	*'Apache License'*'Version 2.0'*) echo Apache-2.0 ;;
	*'SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only'*) echo BSD-3-Clause ;; # the one of the two that we take
	*'Redistribution and use in source and binary forms'*'endorse or promote'*) echo BSD-3-Clause ;;
	*'Redistribution and use in source and binary forms'*) echo BSD-2-Clause ;;
	*'Permission is hereby granted, free of charge'* | *'PERMISSION is hereby granted, free of charge'*) echo MIT ;;
	*'Permission to use, copy, modify, and'*'distribute this software'*) echo ISC ;;
	*) return 1 ;;
	esac
}

# row NAME VERSION WHERE LICENCE FILE... adds a component: its line in the table, and its text once, however many share it.
row() {
	name=$1 version=$2 where=$3 licence=$4
	shift 4
	links=
	for file; do
		sum=$(tr -d '\r' <"$file" | cksum | tr ' ' -)
		number=$(awk -v s="$sum" '$1 == s { print NR; exit }' "$tmp/sums")
		if [ -z "$number" ]; then
			echo "$sum" >>"$tmp/sums"
			number=$(wc -l <"$tmp/sums" | tr -d ' ')
			{
				printf '\n### Text %s\n\n~~~~text\n' "$number"
				tr -d '\r' <"$file" | sed 's/[[:space:]]*$//'
				printf '~~~~\n'
			} >>"$tmp/texts"
		fi
		links="$links${links:+, }[$number](#text-$number)"
	done
	printf '| %s | %s | %s | %s | %s |\n' "$name" "$version" "$where" "$licence" "$links" >>"$tmp/table"
}

# modules COMMAND lists "path version directory" of the modules linked into a command, on any platform.
modules() {
	: >"$tmp/all"
	for platform in $platforms; do
		GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 go list -deps \
			-f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' \
			"./cmd/$1" >>"$tmp/all" || die "cannot list what ./cmd/$1 links on $platform"
	done
	sort -u "$tmp/all"
}

: >"$tmp/sums"
: >"$tmp/texts"
: >"$tmp/table"

row 'Go standard library and runtime' 'see go version -m' both BSD-3-Clause "$(go env GOROOT)/LICENSE"

for command in supervisor qjs-worker; do
	modules "$command" >"$tmp/$command"
done
sort -u "$tmp/supervisor" "$tmp/qjs-worker" >"$tmp/modules"
while read -r path version dir; do
	[ -n "$dir" ] || die "$path $version is not in the module cache: run make deps"
	line="$path $version $dir"
	where=both
	grep -qxF -- "$line" "$tmp/qjs-worker" || where=supervisor
	grep -qxF -- "$line" "$tmp/supervisor" || where=qjs-worker
	set --
	for file in "$dir"/LICEN[CS]E* "$dir"/License* "$dir"/COPYING* "$dir"/NOTICE* "$dir"/PATENTS*; do
		[ ! -f "$file" ] || set -- "$@" "$file"
	done
	[ $# -gt 0 ] || die "$path $version has no licence file in $dir"
	licence=$(licence_of "$1") || die "$path $version: unknown licence, read $1 and teach notices.sh"
	row "$path" "$version" "$where" "$licence" "$@"
done <"$tmp/modules"

sh "$fetch" list | awk '{ print $1, $2 }' | sort -u >"$tmp/npm"
while read -r package version; do
	tgz=$(sh "$fetch" tarball "$package")
	member=$(tar -tzf "$tgz" | grep -iE '^package/(licen[cs]e|copying)[^/]*$' | head -n 1)
	[ -n "$member" ] || die "npm package $package has no licence file"
	file=$tmp/$(printf '%s' "$package" | tr / -).licence
	tar -xzOf "$tgz" "$member" >"$file"
	licence=$(licence_of "$file") || die "npm package $package: unknown licence, read $member and teach notices.sh"
	row "$package (npm)" "$version" qjs-worker "$licence" "$file"
done <"$tmp/npm"

# Compiled into quickjs.wasm; the npm package names them but does not carry their texts.
row 'QuickJS-ng, in quickjs.wasm' '' qjs-worker 'MIT, Unicode-3.0' scripts/licenses/quickjs-ng.txt
row 'wasi-libc, in quickjs.wasm' '' qjs-worker MIT scripts/licenses/wasi-libc.txt

{
	cat <<'END'
<!-- Made by scripts/notices.sh (make notices). DO NOT EDIT. -->

# Third-party notices

What is inside the binaries `supervisor` and `qjs-worker` besides our own code (LICENSE), on Linux and macOS. The
last column leads to the licence text below. Tests and tools use more; none of that is shipped.

The source of every Go module is what `go mod download` fetches for the version in `go.mod`, unchanged (for modules
under MPL-2.0 this is the notice that its section 3.2 asks for). The source of an npm package is the
package itself, or the repository that its `package.json` names.

| component | version | in | licence | text |
| --- | --- | --- | --- | --- |
END
	cat "$tmp/table"
	printf '\n## Licence texts\n'
	cat "$tmp/texts"
} >"$tmp/out"

if [ "$mode" = --check ]; then
	cmp -s "$tmp/out" "$out" && exit 0
	diff -u "$out" "$tmp/out" 2>&1 | grep '^[-+]|' >&2 || true
	die "$out is out of date: run make notices"
fi
cat "$tmp/out" >"$out"
