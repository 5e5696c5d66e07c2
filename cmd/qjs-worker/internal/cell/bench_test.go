package cell

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// sample is about two kilobytes of what models write.
const sample = `// Collect the open issues of both repositories and summarise them by label.
const repos = ["openclaw/openclaw", "openclaw/docs"];
const limit = 25;
async function issues(repo) {
  const result = await tools.call("mcp:github:list_issues", { repo, state: "open", limit });
  if (!Array.isArray(result?.items)) {
    throw new Error(` + "`no items for ${repo}: ${JSON.stringify(result)}`" + `);
  }
  return result.items.map((item) => ({
    id: item.id,
    title: item.title.trim().replace(/\s+/g, " "),
    labels: (item.labels ?? []).map((l) => l.name.toLowerCase()),
    age: Math.floor((Date.now() - new Date(item.created_at).getTime()) / 86400000),
  }));
}
const all = (await Promise.all(repos.map(issues))).flat();
const byLabel = new Map();
for (const issue of all) {
  for (const label of issue.labels.length ? issue.labels : ["none"]) {
    if (!byLabel.has(label)) byLabel.set(label, []);
    byLabel.get(label).push(issue);
  }
}
const rows = [...byLabel.entries()]
  .sort(([a, x], [b, y]) => y.length - x.length || a.localeCompare(b))
  .slice(0, 10)
  .map(([label, list]) => {
    const oldest = list.reduce((m, i) => (i.age > m.age ? i : m), list[0]);
    return { label, count: list.length, oldest: oldest.title, days: oldest.age };
  });
for (const row of rows) {
  text(` + "`${row.label.padEnd(20)} ${String(row.count).padStart(4)}  ${row.oldest} (${row.days} days)`" + `);
}
let stale = 0;
for (let i = 0; i < all.length; i++) {
  const issue = all[i];
  switch (true) {
    case issue.age > 365:
      stale += 2;
      break;
    case issue.age > 90:
      stale++;
      break;
    default:
      continue;
  }
}
try {
  await tools.call("openclaw:core:message", { to: "me", body: "done: " + rows.length + " labels" });
} catch (error) {
  console.warn("message failed", error.message);
}
return { total: all.length, stale, labels: rows };
`

var sampleTS = strings.NewReplacer(
	"async function issues(repo)", "interface Issue { id: number; title: string; labels: string[]; age: number }\nasync function issues(repo: string): Promise<Issue[]>",
	"new Map()", "new Map<string, Issue[]>()",
	"byLabel.get(label).push", "byLabel.get(label)!.push",
	"let stale = 0", "let stale: number = 0",
).Replace(sample)

// repeatSample gives about n bytes of code that declares nothing twice.
func repeatSample(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "async function part%d() {\n%s}\n", i, sample)
	}
	return b.String()
}

func BenchmarkNewParser(b *testing.B) {
	for b.Loop() {
		p, err := NewParser(testModule, testImage)
		if err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}

// BenchmarkPrepare is the warm parser; BenchmarkCold is what a worker pays: a parser
// made for one cell.
func BenchmarkPrepare(b *testing.B) { benchmarkPrepare(b, false) }

func BenchmarkCold(b *testing.B) { benchmarkPrepare(b, true) }

func benchmarkPrepare(b *testing.B, cold bool) {
	for _, bb := range []struct {
		name     string
		source   string
		language Language
	}{
		{"tiny", "1+2", ""},
		{"line", `const r = await tools.call("client:t:echo", {v: 1}); return r`, ""},
		{"2KB", sample, ""},
		{"100KB", repeatSample(100_000), ""},
		{"ts-tiny", "1 + (2 as number)", TypeScript},
		{"ts-2KB", sampleTS, TypeScript},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.source)))
			p, err := NewParser(testModule, testImage)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { p.Close() }()
			for b.Loop() {
				if cold {
					p.Close()
					if p, err = NewParser(testModule, testImage); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := p.Prepare(context.Background(), Input{Source: bb.source, Language: bb.language}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
