#!/bin/sh
# Brings the parts of qjs-worker that are other people's work and are not
# committed: the engine and the JavaScript it starts with. Each comes from a
# pinned npm package and is checked against a pinned SHA-256, both in the table
# below. A file that is there with the right hash costs one hash and no network.
#
#   fetch.sh                     fetch what is missing into dist/
#   fetch.sh list                print the table: package, version, file, name in dist/, sha256
#   fetch.sh tarball PACKAGE     print the path of the package's tarball, fetched if need be
#
# To add a file: add a line with 64 zeros as its hash, run this, and copy the
# hash that the error names after looking at what came. Then `make notices`.
set -eu

# package | version | file in the package | name in dist/ | sha256
table() {
	cat <<'END'
quickjs-wasi 3.7.0  quickjs.wasm  quickjs.wasm c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363
acorn        8.19.0 dist/acorn.js acorn.js     b95392d79457d0357555c5ed3e56302d074b92dff119bcf3b44179500b10e9df
END
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../../../.." && pwd)
dist=$here/dist
cache=$root/.cache/npm

tmp=
new=
# Runs at every end, so that an interrupted fetch leaves no half file behind.
cleanup() {
	[ -z "$tmp" ] || rm -rf "$tmp"
	[ -z "$new" ] || rm -f "$new"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
	printf 'fetch.sh: error: %s\n' "$1" >&2
	shift
	for hint; do printf 'fetch.sh: hint: %s\n' "$hint" >&2; done
	exit 1
}

hash_of() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum <"$1" | cut -d' ' -f1
	else
		shasum -a 256 <"$1" | cut -d' ' -f1
	fi
}

# A directory inside .cache, so that the mv out of it stays on one file system and is atomic.
scratch() {
	[ -z "$tmp" ] || return 0
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/fetch.XXXXXX")
}

# tarball PACKAGE VERSION sets $tgz to the path of the package's tarball in .cache/npm.
tarball() {
	tgz=$cache/$(printf '%s' "$1" | tr -d @ | tr / -)-$2.tgz
	[ ! -s "$tgz" ] || return 0
	command -v npm >/dev/null 2>&1 ||
		die "npm is missing, and $1@$2 is not in .cache/npm yet" "install Node.js with npm, then run make deps"
	scratch
	try=1
	while :; do
		# --ignore-scripts: we want the package's files, nothing of it may run here.
		if (cd "$tmp" && npm pack --loglevel=error --ignore-scripts "$1@$2") >"$tmp/log" 2>&1; then break; fi
		if [ "$try" -ge 3 ]; then
			sed 's/^/    /' "$tmp/log" >&2
			die "npm pack $1@$2 failed $try times; its last words are above" \
				"check that npm reaches its registry (npm ping), then run make deps again"
		fi
		printf 'fetch.sh: npm pack %s@%s failed, trying again\n' "$1" "$2" >&2
		sleep "$try"
		try=$((try + 1))
	done
	[ -s "$tmp/${tgz##*/}" ] || die "npm pack $1@$2 succeeded but made no ${tgz##*/}" "is this npm older than 7? update it"
	mv -f "$tmp/${tgz##*/}" "$tgz"
}

# fetch PACKAGE VERSION FILE NAME SHA256
fetch() {
	if [ -f "$dist/$4" ] && [ "$(hash_of "$dist/$4")" = "$5" ]; then return 0; fi
	tarball "$1" "$2"
	scratch
	if ! tar -xzOf "$tgz" "package/$3" >"$tmp/file" 2>"$tmp/log"; then
		sed 's/^/    /' "$tmp/log" >&2
		rm -f "$tgz" # a truncated tarball must not stay in the way of the next try
		die "$1@$2 has no file $3, or its tarball is damaged" "run make deps again; if it stays, correct the table in fetch.sh"
	fi
	got=$(hash_of "$tmp/file")
	if [ "$got" != "$5" ]; then
		rm -f "$tgz"
		die "$3 of $1@$2 has SHA-256 $got, want $5" \
			"the package is not the one this project was built with: do not use it before you know why"
	fi
	# The copy is made in dist/ and renamed there: whoever builds at the same time sees the old file or the new one.
	mkdir -p "$dist"
	new=$(mktemp "$dist/.$4.XXXXXX")
	{ cat "$tmp/file" >"$new" && chmod 0644 "$new" && mv -f "$new" "$dist/$4"; } || die "writing dist/$4"
	new=
	printf 'fetched %s (%s@%s)\n' "$4" "$1" "$2"
}

case ${1-} in
'')
	# Not `table | while`: a function that dies in a pipe would not end the script everywhere.
	rows=$(table)
	while read -r package version file name sha; do
		fetch "$package" "$version" "$file" "$name" "$sha"
	done <<END
$rows
END
	;;
list)
	table
	;;
tarball)
	version=$(table | awk -v p="${2-}" '$1 == p { print $2; exit }')
	[ -n "$version" ] || die "no package ${2-} in the table"
	tarball "$2" "$version"
	printf '%s\n' "$tgz"
	;;
*)
	die "unknown command $1" "fetch.sh, fetch.sh list, fetch.sh tarball PACKAGE"
	;;
esac
