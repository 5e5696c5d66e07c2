package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func names(hits []Hit) []string {
	list := []string{}
	for _, h := range hits {
		list = append(list, h.Tool.Name)
	}
	return list
}

// SPEC 6.6: an exact id or name comes first, MCP tools never.
func TestSearchExact(t *testing.T) {
	c, _ := build(t,
		Entry{Name: "get", Source: Client, Description: "x"},
		Entry{Name: "get_get_get", Source: Client, Description: "get get get"},
		Entry{Name: "why", Source: Client, Description: "a stop word for a name"},
		Entry{Name: "getUser", Source: Client},
		Entry{Name: "get_user", Source: Plugin, SourceName: "p"},
		Entry{Name: "get_user", Source: MCP, SourceName: "get_user", Description: "get_user"},
	)
	for query, want := range map[string]string{
		"get": "client:app:get", "why": "client:app:why", "getUser": "client:app:getUser", "get_user": "plugin:p:get_user",
		"client:app:getUser": "client:app:getUser", " get ": "client:app:get",
	} {
		hits, err := c.Search(query, nil)
		if err != nil || len(hits) == 0 || hits[0].Tool.ID != want {
			t.Errorf("Search(%q) = %v, %v; want %s first", query, names(hits), err, want)
		}
		for _, h := range hits {
			if h.Tool.Source == MCP {
				t.Errorf("Search(%q) shows %s", query, h.Tool.ID)
			}
		}
	}
}

// SPEC 6.6: limits.
func TestSearchLimit(t *testing.T) {
	entries := manyEntries(80)
	c, _, err := Build(entries, Options{SearchDefault: 5, SearchMax: 20})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[string]int{"": 5, "1": 1, "7": 7, "7.0": 7, "20": 20, "21": 20, "1e308": 20} {
		hits, err := c.Search("thing", json.RawMessage(limit))
		if err != nil || len(hits) != want {
			t.Errorf("limit %q: %d hits, %v; want %d", limit, len(hits), err, want)
		}
	}
	for _, limit := range []string{"0", "-1", "1.5", "0.5", `"5"`, "null", "true", "[1]", "{}", "1e999", "x"} {
		if _, err := c.Search("thing", json.RawMessage(limit)); err == nil || !strings.Contains(err.Error(), "whole number") || !strings.Contains(err.Error(), limit) {
			t.Errorf("limit %s: %v, want an error", limit, err)
		}
	}
	if _, err := c.Search(strings.Repeat("x", MaxQueryBytes+1), nil); err == nil {
		t.Error("a query of any length is accepted")
	}
	if c, _, _ = Build(entries, Options{}); len(first(c.Search("thing", nil))) != 8 || len(first(c.Search("thing", json.RawMessage("1000")))) != 50 {
		t.Error("the defaults are not 8 and 50")
	}
}

func first(hits []Hit, _ error) []Hit { return hits }

// A query without a word that counts has no hits, and they are an empty array.
func TestSearchNothing(t *testing.T) {
	c, _ := searchData(t)
	empty, _ := build(t)
	for _, query := range []string{"", "  ", "the of and", "?!", "qqqqzzzz", "\xff\xfe"} {
		for _, c := range []*Catalog{c, empty} {
			hits, err := c.Search(query, nil)
			if err != nil || hits == nil || len(hits) != 0 {
				t.Errorf("Search(%q) = %v, %v", query, names(hits), err)
			}
		}
	}
}

// SPEC 6.6: a hit is the compact entry and callable; equal queries, equal answers.
func TestSearchHit(t *testing.T) {
	c, queries := searchData(t)
	hits, err := c.Search("web_search", json.RawMessage("1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(hits)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"id":"openclaw:core:web_search","name":"web_search","description":"Search the web and return titles, addresses and snippets.","source":"openclaw","callable":"tools.web_search(…)","input":"{ query?: string; count?: number; freshness?: string }"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	again, _ := searchData(t)
	for _, q := range queries {
		a, b := names(first(c.Search(q.Query, nil))), names(first(again.Search(q.Query, nil)))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("Search(%q) differs between equal catalogs:\n%s", q.Query, diff)
		}
	}
}

// SPEC 6.6: words are met split and joined, whatever their form, in a query as in a
// tool, and a slip of the pen is forgiven.
func TestSearchMeets(t *testing.T) {
	for _, test := range []struct{ tool, description, query string }{
		{"createPullRequest", "", "create pull request"},
		{"create_pull_request", "", "createPullRequest"},
		{"create_pull_request", "", "open a PR"},
		{"pr_merge", "", "merge a pull-request"},
		{"listMRs", "Lists MRs.", "merge requests"},
		{"x", "Lists the repositories of GitHub.", "git hub"},
		{"github_list", "", "GitHub"},
		{"HTTPServerStatus", "", "http server"},
		{"r2_list", "", "R2"},
		{"pods", "Kubernetes pods", "k8s"},
		{"time_zone", "", "timezone"},
		{"timezone", "", "time zone"},
		{"generate_bar", "Draws a chart.", "barchart"},
		{"screenshot", "", "screen shot"},
		{"send_message", "", "messages that were sent"},
		{"describe", "A description of the thing.", "descriptions"},
		{"x", "Tells who is available.", "availability"},
		{"queries", "", "query"},
		{"Straße", "", "straße"},
		{"天气", "查询城市的天气预报", "天气预报"},
		{"web天气", "", "天气"},
		{"lights", "Switch a lamp on or off.", "turn the lamp off"},
		{"calendar", "", "calender"},
		{"screenshot", "", "screnshot"},
		{"x", "Charge a card.", "payment"},
		{"then", "", "then"},
		{"x", "", "client:app:x"},
	} {
		c, _ := build(t,
			Entry{Name: test.tool, Description: test.description, Source: Client},
			Entry{Name: "other", Description: "Something else that nobody asks for.", Source: Client},
		)
		hits, err := c.Search(test.query, nil)
		if err != nil || len(hits) != 1 || hits[0].Tool.Name != test.tool {
			t.Errorf("Search(%q) = %v, %v; want %s (%s)", test.query, names(hits), err, test.tool, test.description)
		}
	}
}

// A search does not depend on others that run at the same time, nor on which comes
// first.
func TestSearchConcurrent(t *testing.T) {
	c, queries := searchData(t)
	again, _ := searchData(t)
	var workers sync.WaitGroup
	for n := range 8 {
		workers.Go(func() {
			for i := range queries {
				q := queries[(i*(n+1))%len(queries)].Query
				if diff := cmp.Diff(names(first(again.Search(q, nil))), names(first(c.Search(q, nil)))); diff != "" {
					t.Errorf("Search(%q):\n%s", q, diff)
				}
			}
		})
	}
	workers.Wait()
}

// SPEC 6.6: what tools say of themselves may be as large as Build lets it be, and
// so may the query.
func TestSearchHostile(t *testing.T) {
	long := strings.Repeat("createTheIssue 天气预报 a.b\n", maxDescriptionBytes/30)
	wide := `{"properties":{"a":{"description":"` + strings.Repeat("word ", 20_000) + `"}}}`
	deep := strings.Repeat(`{"properties":{"a":`, 60) + "{}" + strings.Repeat("}}", 60)
	var entries []Entry
	for i, parameters := range []string{wide, deep, `{"properties":[]}`, `{"properties":{"a":true,"b":{"enum":{},"description":[]}}}`, "true", `{"properties":{"a":{"enum":[1,null,"x"]}}}`} {
		entries = append(entries, Entry{Name: fmt.Sprint(strings.Repeat("n", 300), i), Source: Client, Description: long, Label: long, Parameters: json.RawMessage(parameters)})
	}
	c, _ := build(t, entries...)
	for _, query := range []string{
		strings.Repeat("a ", MaxQueryBytes/2), strings.Repeat("x", MaxQueryBytes), strings.Repeat("turn ", MaxQueryBytes/5),
		strings.Repeat("天", MaxQueryBytes/3), strings.Repeat("aB", MaxQueryBytes/2), long[:MaxQueryBytes-4] + "off",
	} {
		start := time.Now()
		if _, err := c.Search(query, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%.20q took %v", query, took)
		}
	}
}

func FuzzSearch(f *testing.F) {
	c, queries := searchData(f)
	for _, q := range queries[:20] {
		f.Add(q.Query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		hits, err := c.Search(query, nil)
		again, _ := c.Search(query, nil)
		if err == nil && (len(hits) > 8 || !slices.Equal(hits, again)) || err != nil && len(query) <= MaxQueryBytes {
			t.Errorf("Search(%q) = %v, %v, then %v", query, names(hits), err, names(again))
		}
	})
}

// An index that is given up half way is made by whoever needs it.
func TestWarm(t *testing.T) {
	c, _ := searchData(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if c.Warm(over); c.index.Load() != nil {
		t.Error("it was made although nobody waits")
	}
	if hits, err := c.Search("web_search", nil); err != nil || len(hits) == 0 {
		t.Errorf("%v, %v", hits, err)
	}
	made := c.index.Load()
	if c.Warm(t.Context()); made == nil || c.index.Load() != made {
		t.Error("it is made twice")
	}
}

// Whatever schema and text Build has let through can be indexed and shown: it all happens inside
// of the supervisor.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{
		`{"properties":{"a b":{"description":"x","enum":["y",1,null,{"z":[]}]}}}`, `true`, ` { "properties" : [ 1 , {} ] } `, `{"properties":{"properties":{"properties":{"properties":{}}}}}`,
		`{"description":["a",["b"]],"enum":"x"}`, `{"":{"\"":"\\"},"properties":null}`, `{"enum":{"a":"b"},"properties":{"x":true,"\u0000":false}}`,
	} {
		f.Add(seed, "Does things. To a.b and\nmore.", "get_x")
	}
	f.Fuzz(func(t *testing.T, schema, description, name string) {
		entries := []Entry{
			{Name: name, Source: Client, Description: description, Parameters: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)},
			{Name: name, Source: MCP, SourceName: description, Description: description, Parameters: json.RawMessage(schema)}, {Name: "x", Source: Client},
		}
		c, _, err := Build(entries, Options{Unavailable: []Unavailable{{Name: name, Reason: description}}})
		if err != nil {
			t.Fatal(err)
		}
		if hits, err := c.Search("x "+name+" "+cut(description, 1000), nil); err == nil {
			if _, err := json.Marshal(hits); err != nil {
				t.Fatal(err)
			}
		}
		c.QuickIndex(2000)
		for _, file := range c.ToolFiles() {
			if _, err := c.ToolFile(file.Path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.API("", "", true); err != nil {
			t.Fatal(err)
		}
		for _, tool := range c.MCP() {
			server, _, _ := strings.Cut(tool.Path(), ".")
			if raw, err := c.API(server, "", true); err != nil || !json.Valid(raw) {
				t.Fatalf("%s, %v", raw, err)
			}
		}
		if denied := (Policy{Deny: []string{"*" + cut(name, 100) + "*"}}).Apply(entries); len(denied) != len(entries) {
			t.Fatal("entries were lost")
		}
	})
}

func TestStem(t *testing.T) {
	for _, family := range []string{
		"create creates creating created creation", "delete deletes deleting deleted deletion", "issue issues", "query queries queried",
		"box boxes", "branch branches", "run running runs", "deploy deploys deployed deployment", "class classes", "status status",
		"generate generating generation", "list lists listing listed", "message messages", "available availability", "automatic automatically",
	} {
		forms := strings.Fields(family)
		for _, form := range forms {
			if stem(form) != stem(forms[0]) {
				t.Errorf("stem(%q) = %q, stem(%q) = %q", form, stem(form), forms[0], stem(forms[0]))
			}
		}
	}
}

// The words of a schema are those of its properties and of theirs, whatever else
// stands in it.
func TestSchemaWords(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"a":{"description":"A b.","enum":["x",1,null,{"y":"z"}],"type":"string"},"c":true}}`:                           "a|A b.|x|c",
		` { "type" : "object" , "properties" : { "p\u0061\"th" : { "properties" : { "in" : { "properties" : { "out" : {} } } } } } } `: `pa"th|in`,
		`{"description":"Of all.","$defs":{"d":{"properties":{"no":{}}}},"items":[{"properties":{"no":{}}}],"properties":{}}`:          "Of all.",
		`{"properties":{"a":{"description":["x",{"description":"y"}],"enum":"e","default":"]}\""},"b":{"enum":[]}}}`:                   "a|x|e|b",
		`{"properties":[{"no":1}],"enum":{"no":"no"}}`:                                                                                 "", `true`: "", `{}`: "", ` {"properties":"no"} `: "",
	} {
		var words []string
		r := schemaReader{text: schema, word: func(_ field, w string) { words = append(words, w) }}
		r.value(aSchema, 1)
		if got := strings.Join(words, "|"); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"One that is long. Two.": "One that is long|Two.", "One\nTwo\n\nThree": "One|Two|Three", "e.g. this": "e.g. this", "": "", ".": ".",
		"Version 1.2 of it": "Version 1.2 of it",
	} {
		if got := strings.Join(slices.Collect(sentences(text)), "|"); got != want {
			t.Errorf("sentences(%q) = %q, want %q", text, got, want)
		}
	}
}
