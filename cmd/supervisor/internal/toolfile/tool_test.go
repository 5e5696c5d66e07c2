package toolfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// one returns the tool of a file with one tool.
func one(t testing.TB, fields string) *Tool {
	t.Helper()
	tools, err := Parse("t.json5", []byte(`{tools: [{name: "x", `+fields+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return tools[0]
}

// outcome is what a call gave, in one line.
func outcome(value json.RawMessage, err error) string {
	var failed *ToolError
	if errors.As(err, &failed) {
		return fmt.Sprintf("%s: %s", failed.Code, failed.Message)
	}
	if err != nil {
		return "given up: " + err.Error()
	}
	return string(value)
}

// SPEC 20: behaviours.
func TestRun(t *testing.T) {
	const input = `{"a": 9007199254740993}`
	tests := []struct {
		fields string
		want   []string // of calls in a row
	}{
		{`result: {n: 9007199254740993, s: '\ud800', __proto__: 1, h: 0x10,}`, []string{`{"n":9007199254740993,"s":"\ud800","__proto__":1,"h":16}`}},
		{`result: null`, []string{`null`}},
		{`result: false`, []string{`false`}},
		{`echo: true`, []string{input}},
		{`error: "no such file"`, []string{"tool_error: no such file"}},
		{`sequence: [{error: "again"}, {result: 1}, {echo: true}]`, []string{"tool_error: again", "1", input, input, input}},
		{`sequence: [{result: 1}]`, []string{"1", "1"}},
		{`command: ["cat"]`, []string{input}},
		{`sequence: [{command: ["sh", "-c", "exit 4"]}, {command: ["echo", "7"]}]`, []string{`command_failed: program "sh" ended with status 4`, "7", "7"}},

		// MCP results.
		{`source: "mcp", sourceName: "s", result: {content: [{type: "text", text: "hi"}], structuredContent: {a: 1}}`, []string{`{"content":[{"type":"text","text":"hi"}],"structuredContent":{"a":1}}`}},
		{`source: "mcp", result: {content: []}`, []string{`{"content":[]}`}},
		{`source: "mcp", result: {content: "text"}`, []string{`{"content":[{"type":"text","text":"{\"content\":\"text\"}"}],"structuredContent":{"content":"text"}}`}},
		{`source: "mcp", result: {content: [1]}`, []string{`{"content":[{"type":"text","text":"{\"content\":[1]}"}],"structuredContent":{"content":[1]}}`}},
		{`source: "mcp", result: [1, "<"]`, []string{`{"content":[{"type":"text","text":"[1,\"<\"]"}]}`}},
		{`source: "mcp", echo: true`, []string{`{"content":[{"type":"text","text":"{\"a\": 9007199254740993}"}],"structuredContent":{"a":9007199254740993}}`}},
		{`source: "mcp", error: "no"`, []string{`{"content":[{"type":"text","text":"no"}],"isError":true}`}},
		{`source: "mcp", command: ["sh", "-c", "echo oops >&2; exit 1"]`, []string{`{"content":[{"type":"text","text":"program \"sh\" ended with status 1: oops"}],"isError":true}`}},
	}
	for _, tt := range tests {
		tool := one(t, tt.fields)
		for i, want := range tt.want {
			if got := outcome(tool.Run(t.Context(), json.RawMessage(input), nil)); got != want {
				t.Errorf("{%s}, call %d:\ngot  %s\nwant %s", tt.fields, i+1, got, want)
			}
		}
	}
}

// SPEC 20: park and delayMs, of a tool and of the steps of a sequence.
func TestParkAndDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := one(t, `park: true, delayMs: 50, sequence: [{result: 1}, {result: 2, park: false}, {result: 3, delayMs: 7, park: true}, {result: 4, delayMs: 0}]`)
		type call struct {
			Value  string
			Parked bool
			Took   time.Duration
		}
		var got []call
		for range 5 {
			c := call{}
			start := time.Now()
			c.Value = outcome(tool.Run(t.Context(), nil, func(string) { c.Parked = time.Since(start) == 0 }))
			c.Took = time.Since(start)
			got = append(got, c)
		}
		want := []call{{"1", true, 50e6}, {"2", false, 50e6}, {"3", true, 7e6}, {"4", true, 0}, {"4", true, 0}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A delay ends when its call is given up, and so does one that has not begun.
func TestDelayAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := one(t, `result: 1, delayMs: 86400000`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := tool.Run(ctx, nil, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := one(t, `source: "mcp", result: 1`).Run(ctx, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a dead call gave %v", err)
		}
	})
}

// Each step of a sequence is given out once, however many calls there are at once.
func TestSequenceConcurrently(t *testing.T) {
	tool := one(t, `sequence: [{result: 0}, {result: 1}, {result: 2}, {result: 3}, {result: 4}]`)
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[string]int{}
	for range 20 {
		wg.Go(func() {
			value := outcome(tool.Run(t.Context(), nil, nil))
			mu.Lock()
			defer mu.Unlock()
			got[value]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"0": 1, "1": 1, "2": 1, "3": 1, "4": 16}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
