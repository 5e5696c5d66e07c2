package view

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

var update = flag.Bool("update", false, "write the golden files")

// fixtures are those of the package above.
func fixtures(t testing.TB) map[string][]byte {
	names, err := filepath.Glob("../testdata/*.jsonl")
	if err != nil || len(names) < 4 {
		t.Fatalf("found %d fixtures, %v", len(names), err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = b
	}
	return files
}

func read(t testing.TB, b []byte) *trajectory.Tree {
	log, err := trajectory.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return log.Tree()
}

func text(t testing.TB, tree *trajectory.Tree, colour bool) string {
	var out bytes.Buffer
	if err := Text(&out, tree, colour); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// SPEC 18.1, 19.2: the tree in a terminal.
func TestText(t *testing.T) {
	for name, b := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			tree := read(t, b)
			got := text(t, tree, false)
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got), or run with -update:\n%s", diff)
			}
			// Colour adds codes and nothing else.
			coloured := text(t, tree, true)
			for _, code := range []string{bold, dim, red, green, yellow, cyan, reset} {
				coloured = strings.ReplaceAll(coloured, code, "")
			}
			if coloured != got {
				t.Errorf("with colour:\n%s\nwithout:\n%s", coloured, got)
			}
		})
	}
}

// What a terminal gets is printable, whatever the file says.
func TestTextIsPrintable(t *testing.T) {
	for r := range strings.Lines(text(t, read(t, fixtures(t)["hostile"]), false)) {
		r = strings.TrimSuffix(r, "\n")
		if i := strings.IndexFunc(r, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || len(r) > 4000 {
			t.Errorf("%d bytes, %q at %d", len(r), r, i)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500: "2µs", 1_234_567: "1.2ms", 999_960_000: "1s", 1_234_567_890: "1.23s", 61_400_000_000: "1m1s",
	} {
		if got := duration(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestBody(t *testing.T) {
	for _, tt := range []struct {
		content string
		n       int
		want    string
	}{
		{`"a\nb\u001b<"`, 100, "a\nb\ufffd<"}, {`{"a":"<"}`, 100, "{\n  \"a\": \"<\"\n}"}, {`[1,2]`, 3, "[1,…\n[5 B in all; the file has the rest]"},
		{`"ééé"`, 3, "é…\n[5 B in all; the file has the rest]"}, {`"[[\"["`, 9, "[[\"["},
	} {
		if got := body(&trajectory.Data{Bytes: 5, Content: []byte(tt.content)}, tt.n); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.content, got, tt.want)
		}
	}
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	if got := body(&trajectory.Data{Content: []byte(deep)}, maxBody); got != deep {
		t.Errorf("nested brackets became %d bytes", len(got))
	}
}
