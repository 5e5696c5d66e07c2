#!/bin/sh
# Makes the worker's start images (go generate), if anything they are made of, or
# they themselves, changed since the last time. Compares contents, not times: a
# git checkout sets times as it likes.
set -eu
export LC_ALL=C
cd "$(dirname -- "$0")/.."
internal=cmd/qjs-worker/internal
stamp=.cache/stamps/images

# The engine, the prelude, the parser, what embeds them, and everything in dist/, images included.
state() {
	{
		find "$internal/assets/dist" -type f ! -name '.*'
		find "$internal/assets" "$internal/engine" "$internal/guest" "$internal/cell" -type f ! -name '*_test.go' \
			\( -name '*.go' -o -name '*.js' -o -name '*.ts' \) ! -path '*/testdata/*' ! -path '*/dist/*'
		echo go.mod
	} | sort | while read -r file; do
		printf '%s ' "$file"
		cksum <"$file"
	done
	go env GOVERSION
}

mkdir -p "${stamp%/*}"
if [ -f "$stamp" ] && [ "$(state)" = "$(cat "$stamp")" ]; then exit 0; fi
rm -f "$internal/assets/dist/embed.go" # it names files that may be missing, and the generator must compile
go generate ./cmd/qjs-worker/...
new=$(mktemp "$stamp.XXXXXX")
state >"$new"
mv -f "$new" "$stamp"
