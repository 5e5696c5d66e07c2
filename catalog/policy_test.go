package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 2.2, 6.5: a pattern may be written by any of a tool's names, and none is a way around it.
func TestPolicy(t *testing.T) {
	entries := []Entry{
		{Name: "delete-repo", Source: MCP, SourceName: "github"},
		{ID: "client:app:harmless", Name: "get-user", Source: Client}, // under an id of another name
		{ID: "plugin:x:danger", Name: "safe", Source: Plugin, SourceName: "x"},
		{Name: "read", Source: OpenClaw}, {Source: MCP, SourceName: "github", Operation: ResourcesRead},
	}
	all := []string{"client:app:harmless", "mcp:github:delete-repo", "mcp:github:resources/read", "openclaw:core:read", "plugin:x:danger"}
	without := func(ids ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(ids, id) })
	}
	for _, tt := range []struct {
		policy Policy
		want   []string
	}{
		{Policy{}, all},
		{Policy{Deny: []string{"*"}}, nil},
		{Policy{Allow: []string{"openclaw:*"}}, []string{"openclaw:core:read"}},
		{Policy{Allow: []string{"*"}, Deny: []string{"read"}}, without("openclaw:core:read")},
		{Policy{Allow: []string{"nothing"}}, nil},
		{Policy{Deny: []string{"mcp:github:delete-repo"}}, without("mcp:github:delete-repo")},
		{Policy{Deny: []string{"delete-*"}}, without("mcp:github:delete-repo")},
		{Policy{Deny: []string{"MCP.github.deleteRepo"}}, without("mcp:github:delete-repo")},
		{Policy{Deny: []string{"MCP.github"}}, without("mcp:github:delete-repo", "mcp:github:resources/read")},
		{Policy{Deny: []string{"MCP.github.*"}}, without("mcp:github:delete-repo", "mcp:github:resources/read")},
		{Policy{Deny: []string{"client:app:get-user"}}, without("client:app:harmless")},
		{Policy{Deny: []string{"client:app:harmless"}}, without("client:app:harmless")},
		{Policy{Deny: []string{"get_user"}}, without("client:app:harmless")},
		{Policy{Deny: []string{"tools.get_user"}}, without("client:app:harmless")},
		{Policy{Deny: []string{"plugin:x:danger"}}, without("plugin:x:danger")},
		{Policy{Deny: []string{"plugin:x:safe"}}, without("plugin:x:danger")},
		{Policy{Deny: []string{"resources/*"}}, without("mcp:github:resources/read")},
		{Policy{Deny: []string{"READ", "openclaw:core"}}, all},
	} {
		before := slices.Clone(entries)
		c, _ := build(t, tt.policy.Apply(entries)...)
		got := append(ids(c.All()), ids(c.MCP())...)
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v leaves %q, want %q", tt.policy, got, tt.want)
		}
		if diff := cmp.Diff(before, entries); diff != "" {
			t.Errorf("%+v changed its argument:\n%s", tt.policy, diff)
		}
		// What was denied stays so when the catalog is built again, from all that it gives.
		again, _ := build(t, c.Entries()...)
		if len(again.Entries()) != len(entries) || again.Len() != c.Len() {
			t.Errorf("%+v: built again it has %d of %d entries, %d tools", tt.policy, len(again.Entries()), len(entries), again.Len())
		}
	}
}

// SPEC 6.5: the names that a cell sees can be denied, those with numbers too, and then nothing has
// them.
func TestPolicyOfNumberedNames(t *testing.T) {
	tool := func(server, name string) Entry { return Entry{Name: name, Source: MCP, SourceName: server} }
	entries := []Entry{tool("s", "get-user"), tool("s", "get.user"), tool("s", "get_user"), tool("s", "delete"), tool("a-b", "run"), tool("a_b", "run"), tool("a_b", "more"), tool("s", "other")}
	for pattern, want := range map[string][]string{
		"MCP.s.getUser2": {"mcp:s:delete", "mcp:s:get-user", "mcp:s:other"}, // whoever moves up goes, too
		"MCP.s.getUser3": {"mcp:s:delete", "mcp:s:get-user", "mcp:s:get.user", "mcp:s:other"},
		"MCP.s.delete2":  {"mcp:s:get-user", "mcp:s:get.user", "mcp:s:get_user", "mcp:s:other"},
	} {
		c, _ := build(t, Policy{Deny: []string{pattern, "MCP.aB", "MCP.aB2"}}.Apply(entries)...)
		if diff := cmp.Diff(want, ids(c.MCP())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	for pattern, want := range map[string][]string{"MCP.aB2": {"mcp:a-b:run"}, "MCP.aB2.more": {"mcp:a-b:run", "mcp:a_b:run"}, "MCP.aB2.run": {"mcp:a-b:run", "mcp:a_b:more"}} {
		c, _ := build(t, Policy{Deny: []string{pattern, "MCP.s"}}.Apply(entries)...)
		if diff := cmp.Diff(want, ids(c.MCP())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	var many []Entry
	for i := range 2000 {
		many = append(many, Entry{ID: fmt.Sprintf("mcp:s:%05d", i), Name: strings.Repeat("🚀", 1+i), Source: MCP, SourceName: "s"})
	}
	c, _ := build(t, Policy{Deny: []string{"MCP.s.tool2"}}.Apply(append(many, tool("s", "other")))...)
	if diff := cmp.Diff([]string{"mcp:s:00000", "mcp:s:other"}, ids(c.MCP())); diff != "" && c.byPath["s.tool2"] != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// SPEC 6.5: a denied tool is as one that does not exist, whatever it is called by, and the audit
// knows better.
func TestDenied(t *testing.T) {
	entries := []Entry{
		{Name: "get-user", Source: Client, Description: "find the needle", Denied: true},
		{Name: "drop_table", Source: MCP, SourceName: "db", Description: "find the needle", Denied: true},
		{Name: "drop_table2", Source: MCP, SourceName: "db"}, {Name: "run", Source: Client}, {ID: "client:app:get-user", Name: "other", Source: Plugin},
	}
	var without []Entry
	for _, e := range entries {
		if !e.Denied && e.ID == "" {
			without = append(without, e)
		}
	}
	c, warnings := build(t, entries...)
	plain, _ := build(t, without...)
	if len(warnings) != 1 || c.Len() != 2 {
		t.Errorf("%d tools, %q", c.Len(), warnings)
	}
	text := func(err error) string {
		if err == nil {
			return "found"
		}
		return err.Error()
	}
	for _, asked := range []string{"client:app:get-user", "get-user", "get_user", "mcp:db:drop_table", "drop_table", "other"} {
		_, err := c.Resolve(asked)
		_, want := plain.Resolve(asked)
		if text(err) != text(want) {
			t.Errorf("Resolve(%q): %v, without the tool %v", asked, err, want)
		}
		var lookup *LookupError
		if denied := errors.As(err, &lookup) && len(lookup.Denied()) == 1; denied != (asked != "other") {
			t.Errorf("Resolve(%q): the audit says %t", asked, denied)
		}
	}
	_, err := c.ResolveMCP("db.dropTable")
	_, want := plain.ResolveMCP("db.dropTable")
	var lookup *LookupError
	if text(err) != text(want) || !errors.As(err, &lookup) || !slices.Equal(lookup.Denied(), []string{"mcp:db:drop_table"}) {
		t.Errorf("ResolveMCP: %v, without the tool %v, the audit says %v", err, want, lookup.Denied())
	}
	for asked, want := range map[string][]string{"tools.get_user": {"client:app:get-user"}, "MCP.db.dropTable": {"mcp:db:drop_table"}, "tools.run": nil, "MCP.db": {"mcp:db:drop_table"}, "MCP": nil} {
		if got := c.Denied(asked); !slices.Equal(got, want) {
			t.Errorf("Denied(%q) = %v, want %v", asked, got, want)
		}
	}
	if diff := cmp.Diff(plain.Surface(), c.Surface()); diff != "" {
		t.Errorf("the surface shows a difference:\n%s", diff)
	}
	if a, b := first(c.Search("find the needle", json.RawMessage("50"))), first(plain.Search("find the needle", json.RawMessage("50"))); len(a) != len(b) {
		t.Errorf("a search finds %v, without the tools %v", names(a), names(b))
	}
}

// SPEC 10.1: what needs an approval can be named as what is denied can, and a verdict stays.
func TestPolicyApprove(t *testing.T) {
	tool := func(name string) Entry { return Entry{Name: name, Source: MCP, SourceName: "s"} }
	entries := []Entry{
		tool("get-user"), tool("get.user"), tool("get_user"), {ID: "client:app:harmless", Name: "get-user", Source: Client},
		{Name: "exec", Source: OpenClaw, Approval: true}, {Source: MCP, SourceName: "s", Operation: PromptsGet},
	}
	for _, tt := range []struct {
		policy Policy
		want   []string
	}{
		{Policy{}, nil},
		{Policy{Approve: []string{"*"}}, []string{"client:app:harmless", "mcp:s:get-user", "mcp:s:get.user", "mcp:s:get_user", "mcp:s:prompts/get"}},
		{Policy{Approve: []string{"MCP.s"}}, []string{"mcp:s:get-user", "mcp:s:get.user", "mcp:s:get_user", "mcp:s:prompts/get"}},
		{Policy{Approve: []string{"tools.get_user", "prompts/*"}}, []string{"client:app:harmless", "mcp:s:prompts/get"}},
		{Policy{Approve: []string{"client:app:get-user"}}, []string{"client:app:harmless"}},
		{Policy{Approve: []string{"MCP.s.getUser3"}}, []string{"mcp:s:get_user"}},
		// With one denied the others move up, and any that was ever called so needs it.
		{Policy{Approve: []string{"MCP.s.getUser2"}, Deny: []string{"mcp:s:get-user"}}, []string{"mcp:s:get_user"}},
		{Policy{Approve: []string{"MCP.s.getUser2"}, Deny: []string{"MCP.s.getUser"}}, nil},
		{Policy{Approve: []string{"get-user"}, Deny: []string{"get-user"}}, nil},
	} {
		c, _ := build(t, tt.policy.Apply(entries)...)
		for range 2 {
			var got []string
			for _, e := range c.Entries() {
				if e.Approval && !e.Denied {
					got = append(got, e.ID)
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(append(slices.Clone(tt.want), "openclaw:core:exec"), got); d != "" {
				t.Errorf("%+v (-want +got):\n%s", tt.policy, d)
			}
			c, _ = build(t, c.Entries()...)
		}
	}
}
