#!/bin/sh
# Brings the TypeScript compiler, and the types of Node.js, with which tests compile what
# catalog/declare renders and examples/gateway-node. Neither is in our binaries. Each comes
# from a pinned npm package, checked against a pinned SHA-256, and stands in .cache.
set -eu

# package | version | folder in .cache | sha256
# The types stand in a node_modules, where the compiler looks for what they import.
table() {
	cat <<'END'
typescript   5.9.3    typescript/5.9.3                              10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3
@types/node  20.19.43 node-types/20.19.43/node_modules/@types/node  9963f2cb96d2b26dbf9cf86262c698815cbec9503af73c7ce75209d1d0658f3d
undici-types 6.21.0   node-types/20.19.43/node_modules/undici-types cfa1a9a5e18988850e548f4f6b629c58da32dc32bebb116e58ea301e516fd16d
END
}

cd "$(dirname -- "$0")/.."
root=$(pwd)
cache=$root/.cache/npm

die() {
	printf 'typescript.sh: error: %s\n' "$1" >&2
	printf 'typescript.sh: hint: %s\n' "$2" >&2
	exit 1
}

hash_of() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum <"$1" | cut -d' ' -f1
	else
		shasum -a 256 <"$1" | cut -d' ' -f1
	fi
}

tmp=
trap '[ -z "$tmp" ] || rm -rf "$tmp"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# fetch PACKAGE VERSION FOLDER SHA256
fetch() {
	dir=$root/.cache/$3
	[ ! -f "$dir/package.json" ] || return 0

	# Inside .cache, so that the mv out of it is atomic: an interrupted fetch leaves nothing half.
	mkdir -p "$cache" "${dir%/*}"
	tmp=$(mktemp -d "$cache/typescript.XXXXXX")
	tgz=$cache/$(printf '%s' "$1" | tr -d @ | tr / -)-$2.tgz
	if [ ! -s "$tgz" ]; then
		command -v npm >/dev/null 2>&1 || die "npm is missing" "install Node.js with npm, then run make deps"
		try=1
		until (cd "$tmp" && npm pack --loglevel=error --ignore-scripts "$1@$2") >"$tmp/log" 2>&1; do
			if [ "$try" -ge 3 ]; then
				sed 's/^/    /' "$tmp/log" >&2
				die "npm pack $1@$2 failed $try times; its last words are above" \
					"check that npm reaches its registry (npm ping), then run make deps again"
			fi
			sleep "$try"
			try=$((try + 1))
		done
		mv -f "$tmp/${tgz##*/}" "$tgz"
	fi
	got=$(hash_of "$tgz")
	if [ "$got" != "$4" ]; then
		rm -f "$tgz" # a truncated tarball must not stay in the way of the next try
		die "${tgz##*/} has SHA-256 $got, want $4" \
			"run make deps again; if it stays, do not use the package before you know why"
	fi
	# The folder at a tarball's top is package, or whatever its maker called it.
	mkdir "$tmp/package"
	tar -xzf "$tgz" -C "$tmp/package" --strip-components=1
	rm -rf "$dir"
	mv -f "$tmp/package" "$dir"
	rm -rf "$tmp"
	tmp=
	printf 'fetched %s %s\n' "$1" "$2"
}

rows=$(table)
while read -r package version folder sha; do
	fetch "$package" "$version" "$folder" "$sha"
done <<END
$rows
END
