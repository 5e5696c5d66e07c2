#!/bin/sh
# Runs the Go benchmarks and the Node baseline on this machine, one after the other, and prints both as
# tables. What was printed is kept in .cache/bench/.
#
#   bench.sh [PATTERN]   Go benchmarks to run, default all; COUNT=1 and NODE_RUNS= as variables
#
# A Go benchmark that wants its median beside the baseline's reports it itself:
# b.ReportMetric(ms, "p50-ms"); every such metric gets into the table.
set -eu
cd "$(dirname -- "$0")/.."
dir=.cache/bench
mkdir -p "$dir"

# One package at a time (-p 1): on two cores, two at once measure each other.
if ! go test -p 1 -run='^$' -bench="${1:-.}" -benchmem -count="${COUNT:-1}" -timeout 30m ./... >"$dir/go.txt" 2>&1; then
	cat "$dir/go.txt" >&2
	exit 1
fi
if [ -n "${NODE_RUNS-}" ]; then
	node bench/node-worker/bench.mjs --runs "$NODE_RUNS" >"$dir/node.jsonl"
else
	node bench/node-worker/bench.mjs >"$dir/node.jsonl"
fi

echo
echo "Go, $(go env GOVERSION), $(uname -sm), $(getconf _NPROCESSORS_ONLN) cores"
awk '
	function human(ns) {
		if (ns >= 1e9) return sprintf("%.2f s", ns / 1e9)
		if (ns >= 1e6) return sprintf("%.2f ms", ns / 1e6)
		if (ns >= 1e3) return sprintf("%.2f µs", ns / 1e3)
		return sprintf("%.1f ns", ns)
	}
	/^BenchmarkSearchQuality/ { n++; next } # below
	/^Benchmark/ {
		name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
		mean = "-"; more = ""
		for (i = 3; i < NF; i += 2) {
			if ($(i + 1) == "ns/op") mean = human($i)
			else more = more "  " $i " " $(i + 1)
		}
		printf "  %-44s %12s %s\n", name, mean, more
		n++
	}
	END { if (!n) print "  (no Go benchmark ran)" }
' "$dir/go.txt"

# How well, not how fast: the shares come from b.ReportMetric.
awk '
	/^BenchmarkSearchQuality\// {
		name = $1; sub(/^BenchmarkSearchQuality\//, "", name); sub(/-[0-9]+$/, "", name)
		split(name, part, "/")
		for (i = 3; i < NF; i += 2) value[$(i + 1)] = $i
		if (!n++) {
			print "\nSearch quality on catalog/testdata/search"
			printf "  %-10s %8s  %-5s %9s %9s %9s\n", "difficulty", "queries", "by", "recall@1", "recall@8", "MRR"
		}
		printf "  %-10s %8d  %-5s %9.3f %9.3f %9.3f\n", part[1], value["queries"], part[2], value["recall@1"], value["recall@8"], value["MRR"]
	}
' "$dir/go.txt"

echo
echo "Node baseline (bench/node-worker), Node $(node --version), milliseconds"
# shellcheck disable=SC2016 # it is JavaScript
node -e '
	const lines = require("fs").readFileSync(process.argv[1], "utf8").trim().split("\n").map((l) => JSON.parse(l));
	const cell = (v, n) => String(v).padStart(n);
	console.log("  " + "benchmark".padEnd(24) + ["runs", "whole p50", "whole p99", "guest p50", "guest p99"].map((h) => cell(h, 12)).join(""));
	for (const l of lines) {
		const columns = [l.runs, l.whole_ms.median, l.whole_ms.p99, l.guest_ms.median, l.guest_ms.p99];
		console.log("  " + `${l.bench} ${l.process}`.padEnd(24) + columns.map((v) => cell(v, 12)).join(""));
	}
' "$dir/node.jsonl"
