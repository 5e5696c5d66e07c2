#!/bin/sh
# Runs every fuzz test of the module, one after the other, TIME each.
#
#   fuzz.sh [TIME]     default 10s
set -eu
cd "$(dirname -- "$0")/.."
time=${1:-10s}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Only packages with a fuzz test: the listing links a test binary for each package it is asked about.
go list -f '{{.Dir}}|{{.ImportPath}}|{{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}' ./... >"$tmp/packages"
while IFS='|' read -r dir package files; do
	for file in $files; do
		if grep -q '^func Fuzz' "$dir/$file"; then
			echo "$package"
			break
		fi
	done
done <"$tmp/packages" >"$tmp/candidates"

total=0
while read -r package; do
	go test -list '^Fuzz' "$package" >"$tmp/list" || { cat "$tmp/list" >&2; exit 1; }
	grep '^Fuzz' "$tmp/list" >"$tmp/names" || {
		echo "fuzz.sh: error: $package has a func Fuzz… that go test does not list" >&2
		exit 1
	}
	while read -r name; do
		echo "== $name ($package), $time"
		try=1
		while ! go test -run='^$' -fuzz="^$name\$" -fuzztime="$time" "$package" </dev/null >"$tmp/log" 2>&1; do
			cat "$tmp/log"
			# On a busy machine the fuzzer's own coordinator may report its deadline as a failure
			# (golang/go#75804, fixed in Go 1.27). That one is tried again, once; a failing input never is.
			if [ "$try" = 1 ] && grep -q 'context deadline exceeded' "$tmp/log" && ! grep -q 'Failing input' "$tmp/log"; then
				echo "== $name: no failing input, only the deadline; once more"
				try=2
				continue
			fi
			exit 1
		done
		tail -n 2 "$tmp/log"
		total=$((total + 1))
	done <"$tmp/names"
done <"$tmp/candidates"
echo "fuzz: $total fuzz tests, $time each"
