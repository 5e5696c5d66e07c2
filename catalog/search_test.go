package catalog

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// searchData is a small gateway of our own and questions to it.
func searchData(t testing.TB) (c *Catalog, queries []struct {
	Query string
	Want  []string
}) {
	t.Helper()
	text, err := os.ReadFile("testdata/search.json")
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Tools   []Entry
		Queries []struct {
			Query string
			Want  []string
		}
	}
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := Build(data.Tools, Options{})
	if err != nil || len(warnings) > 0 || c.Len() < 40 {
		t.Fatalf("%d tools, %v, %v", c.Len(), warnings, err)
	}
	return c, data.Queries
}

func names(hits []Hit) []string {
	list := []string{}
	for _, h := range hits {
		list = append(list, h.Tool.Name)
	}
	return list
}

// SPEC 6.6: abbreviations, brands, cases, plurals, questions.
func TestSearchFinds(t *testing.T) {
	c, queries := searchData(t)
	var reciprocal float64
	for _, q := range queries {
		hits, err := c.Search(q.Query, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := slices.IndexFunc(hits, func(h Hit) bool { return slices.Contains(q.Want, h.Tool.Name) })
		if first < 0 || first > 2 {
			t.Errorf("%q: want one of %v among the first three, got %v", q.Query, q.Want, names(hits))
			continue
		}
		reciprocal += 1 / float64(first+1)
	}
	if mean := reciprocal / float64(len(queries)); mean < 0.9 {
		t.Errorf("mean reciprocal rank %.3f, want 0.9", mean)
	}
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
	want := `[{"id":"openclaw:core:web_search","name":"web_search","description":"Search the web and return titles, links and snippets.","source":"openclaw","callable":"tools.web_search(…)"}]`
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

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"createIssue": "createissue create issue", "GitHub": "github git hub", "HTTPServer": "httpserver http server",
		"r2_list": "r2 list", "k8s": "k8s", "get-user.name": "get user name", "listIDs": "listids list ids",
		"Straße": "straße", "天气预报": "天气 气预 预报", "web天气": "web 天气", "": "", "!?": "",
	} {
		if got := strings.Join(terms(text), " "); got != want {
			t.Errorf("terms(%q) = %q, want %q", text, got, want)
		}
	}
	for _, family := range []string{
		"create creates creating created creation", "delete deletes deleting deleted deletion", "issue issues", "query queries",
		"box boxes", "branch branches", "run running runs", "deploy deploys deployed deployment", "class classes", "status status",
		"generate generating generation", "list lists listing listed", "message messages",
	} {
		forms := strings.Fields(family)
		for _, form := range forms {
			if stem(form) != stem(forms[0]) {
				t.Errorf("stem(%q) = %q, stem(%q) = %q", form, stem(form), forms[0], stem(forms[0]))
			}
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	c, _, _ := Build(manyEntries(5000), Options{})
	c.Search("x", nil)
	for b.Loop() {
		c.Search("how do I do a thing with tool 4321", nil)
	}
}
