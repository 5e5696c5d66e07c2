#!/bin/sh
# Brings the TypeScript compiler, with which the tests of catalog/declare compile what
# that package renders. It is in none of our binaries. It comes from a pinned npm package,
# checked against a pinned SHA-256, and stands in .cache/typescript/<version>.
set -eu

version=5.9.3
sha256=10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3

cd "$(dirname -- "$0")/.."
root=$(pwd)
dir=$root/.cache/typescript/$version
[ ! -f "$dir/lib/tsc.js" ] || exit 0

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

# Inside .cache, so that the mv out of it is atomic: an interrupted fetch leaves nothing half.
mkdir -p "$root/.cache/npm" "$root/.cache/typescript"
tmp=$(mktemp -d "$root/.cache/npm/typescript.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

tgz=$root/.cache/npm/typescript-$version.tgz
if [ ! -s "$tgz" ]; then
	command -v npm >/dev/null 2>&1 || die "npm is missing" "install Node.js with npm, then run make deps"
	try=1
	until (cd "$tmp" && npm pack --loglevel=error --ignore-scripts "typescript@$version") >"$tmp/log" 2>&1; do
		if [ "$try" -ge 3 ]; then
			sed 's/^/    /' "$tmp/log" >&2
			die "npm pack typescript@$version failed $try times; its last words are above" \
				"check that npm reaches its registry (npm ping), then run make deps again"
		fi
		sleep "$try"
		try=$((try + 1))
	done
	mv -f "$tmp/typescript-$version.tgz" "$tgz"
fi
got=$(hash_of "$tgz")
if [ "$got" != "$sha256" ]; then
	rm -f "$tgz" # a truncated tarball must not stay in the way of the next try
	die "typescript-$version.tgz has SHA-256 $got, want $sha256" \
		"run make deps again; if it stays, do not use the package before you know why"
fi
tar -xzf "$tgz" -C "$tmp"
rm -rf "$dir"
mv -f "$tmp/package" "$dir"
printf 'fetched typescript %s\n' "$version"
