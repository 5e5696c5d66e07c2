package namespace

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// call stands in a decoded scope where the guest would have a function.
type call struct{ path string }

// decode reads a NODE as the guest does, and fails on what is none.
func decode(t *testing.T, raw jsonRaw, path string) any {
	t.Helper()
	var n map[string]jsonRaw
	if err := json.Unmarshal(raw, &n); err != nil || len(n) != 1 {
		t.Fatalf("at %q: %.200s is no node, %v", path, raw, err)
	}
	read := func(v any) {
		if err := json.Unmarshal(firstOf(n), v); err != nil {
			t.Fatalf("at %q: %.200s: %v", path, raw, err)
		}
	}
	switch {
	case n["v"] != nil:
		return plain(t, n["v"])
	case n["t"] != nil && string(n["t"]) == "true":
		return call{path}
	case n["a"] != nil:
		var items []jsonRaw
		read(&items)
		list := []any{}
		for i, item := range items {
			list = append(list, decode(t, item, path+Separator+strconv.Itoa(i)))
		}
		return list
	case n["o"] != nil:
		var members [][2]jsonRaw
		read(&members)
		object, last := map[string]any{}, ""
		for _, m := range members {
			var key string
			if err := json.Unmarshal(m[0], &key); err != nil || key <= last {
				t.Fatalf("at %q: key %s comes after %q, %v", path, m[0], last, err)
			}
			last = key
			object[key] = decode(t, m[1], path+Separator+key)
		}
		return object
	}
	t.Fatalf("at %q: %.200s is no node", path, raw)
	return nil
}

func firstOf(n map[string]jsonRaw) jsonRaw {
	for _, v := range n {
		return v
	}
	return nil
}

// plain decodes JSON with the digits of its numbers.
func plain(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	return v
}

// calls lists the paths of a decoded scope.
func calls(v any) []string {
	var paths []string
	switch v := v.(type) {
	case call:
		return []string{v.path}
	case []any:
		for _, item := range v {
			paths = append(paths, calls(item)...)
		}
	case map[string]any:
		for _, item := range v {
			paths = append(paths, calls(item)...)
		}
	}
	return paths
}

type (
	inner struct {
		A any
		B string `json:"b,omitempty"`
	}
	Lent struct {
		X    int `json:"x"`
		A    any
		Deep int
	}
	Other struct{ Deep int }
	outer struct {
		inner
		*Lent
		Other `json:",omitempty"`
		N     int     `json:",string"`
		F     float64 `json:"f,omitempty,string"`
		P     *bool   `json:"p,string"`
		S     string  `json:"s,string"`
		E     any     `json:"e,omitempty"`
		Z     zeroes  `json:"z,omitzero"`
		T     time.Time
		Gone  int `json:"-"`
		own   int
	}
	zeroes struct{ N int }
)

func (z zeroes) IsZero() bool { return z.N == 7 }

// grower makes values of bytes, one for each decision, and with each a twin, of which
// encoding/json makes what a scope has to become.
type grower struct {
	bytes  []byte
	doubts bool // the value may have to be refused
}

func (g *grower) next() byte {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return b
}

var (
	someKeys    = []string{"a", "b", "c d", "ä", "0", "10", "__proto__", "then", "k\x1fk", "constructor2", "\x00", "", "e", "f", "g", "h"}
	someStrings = []string{"", "x", "<&>\u2028", "\ufffd", "🙂", "\x1f", `{"t":true}`, "null"}
	someRaw     = []string{`1`, `"\u00e9"`, `{"b":[1,{}],"a":null}`, ` [1e2 , -0, 1.50] `, `{"t":true}`, `{"__proto__":1}`, `[`, `{"o":[["f",{"t":true}]]}`}
)

const standIn = "a tool stands here"

func (g *grower) key() string {
	k := someKeys[int(g.next())%len(someKeys)]
	g.doubts = g.doubts || forbidden(k) || k == "then"
	return k
}

// value returns a value, and what encoding/json is given in its place.
func (g *grower) value(depth int) (v, twin any) {
	kind := g.next() % 16
	if depth > 8 && kind > 8 {
		kind = 0
	}
	switch kind {
	case 0:
		return nil, nil
	case 1:
		return true, true
	case 2:
		n := int(int8(g.next())) << 50
		return n, n
	case 3:
		f := math.Float64frombits(uint64(g.next())<<56 | uint64(g.next())<<40)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return f, nil
		}
		return f, f
	case 4, 5:
		s := someStrings[int(g.next())%len(someStrings)]
		return s, s
	case 6:
		raw := someRaw[int(g.next())%len(someRaw)]
		if strings.Contains(raw, "__proto__") || raw == "[" {
			g.doubts = true
			return jsonRaw(raw), nil
		}
		return jsonRaw(raw), jsonRaw(raw)
	case 7:
		return Tool("a"), standIn
	case 8:
		b := []byte{g.next(), g.next()}
		return b, b
	case 9, 10:
		n := int(g.next() % 5)
		list, twins := make([]any, n), make([]any, n)
		for i := range n {
			list[i], twins[i] = g.value(depth + 1)
		}
		return list, twins
	case 11:
		v, twin := g.value(depth + 1)
		return &v, &twin
	case 12:
		v, twin := g.value(depth + 1)
		return []any{v, v}, []any{twin, twin}
	case 13:
		return g.structs(depth)
	}
	return g.object(depth)
}

func (g *grower) object(depth int) (v, twin map[string]any) {
	v, twin = map[string]any{}, map[string]any{}
	for range g.next() % 5 {
		k := g.key()
		v[k], twin[k] = g.value(depth + 1)
	}
	return v, twin
}

func (g *grower) structs(depth int) (v, twin any) {
	o := outer{N: int(g.next()), F: float64(g.next()), S: someStrings[int(g.next())%len(someStrings)], Gone: 3, own: 4}
	o.B = someStrings[int(g.next())%len(someStrings)]
	o.Z.N = int(g.next() % 8)
	yes := true
	if g.next()%2 == 1 {
		o.P, o.Lent = &yes, &Lent{X: int(g.next())}
	}
	p := o
	if o.Lent == nil { // both have an A, so that neither counts
		o.inner.A, p.inner.A = g.value(depth + 1)
	}
	o.E, p.E = g.value(depth + 1)
	return o, &p
}

// FuzzScope: a scope means to the guest what encoding/json would have written, with a
// function wherever a marker stands, and each of those can be called.
func FuzzScope(f *testing.F) {
	for i := range 64 {
		seed := make([]byte, 96)
		for j := range seed {
			seed[j] = byte(i*37 + j*j*11 + i*j)
		}
		f.Add(seed)
	}
	f.Add([]byte{1, 0, 7})
	f.Fuzz(func(t *testing.T, decisions []byte) {
		if len(decisions) > 4096 {
			return
		}
		g := &grower{bytes: decisions}
		scope, twin := g.object(0)
		node, s, err := one(t, scope)
		if err != nil {
			if !g.doubts && !strings.Contains(err.Error(), "more than") {
				t.Fatalf("%#v: %v", scope, err)
			}
			return
		}
		want, err := encode(twin)
		if err != nil {
			t.Fatal(err)
		}
		got := decode(t, jsonRaw(node), "x")
		paths := calls(got)
		if diff := cmp.Diff(normal(plain(t, want)), normal(got), cmp.AllowUnexported(call{})); diff != "" {
			t.Fatalf("%s\n(-want +got):\n%s", node, diff)
		}
		noForbidden(t, got)
		for _, path := range paths {
			if target, err := s.Resolve(path); err != nil || target.Tool.ID != "plugin:p:a" {
				t.Fatalf("%q leads to %v, %v", path, target.Tool, err)
			}
		}
		if len(paths) != len(s.targets) {
			t.Fatalf("%d tools can be called, %d places have one", len(s.targets), len(paths))
		}
		if again, _, err := one(t, scope); err != nil || again != node {
			t.Fatalf("the second time %s became %s, %v", node, again, err)
		}
	})
}

func forbidden(key string) bool {
	return key == "__proto__" || key == "constructor" || key == "prototype" || key == "" || strings.Contains(key, Separator)
}

func noForbidden(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			noForbidden(t, item)
		}
	case map[string]any:
		for k, item := range v {
			if forbidden(k) {
				t.Fatalf("the key %q came through", k)
			}
			noForbidden(t, item)
		}
	}
}

// normal makes tools what stands for them in the twin.
func normal(v any) any {
	switch v := v.(type) {
	case call:
		return standIn
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	}
	return v
}

// FuzzResolve: of all paths, only those that Build wrote down lead to a tool; whatever the
// guest passes, there is an input that is JSON or an error that is short.
func FuzzResolve(f *testing.F) {
	scope := map[string]any{"f": Tool("a"), "list": []any{Tool("b"), map[string]any{"k\x00": Tool("a")}}, "data": map[string]any{"t": true}}
	_, s, err := one(f, scope)
	if err != nil {
		f.Fatal(err)
	}
	valid := map[string]string{"x\x1ff": "a", "x\x1flist\x1f0": "b", "x\x1flist\x1f1\x1fk\x00": "a"}
	for path := range valid {
		for _, args := range []string{`[]`, `[{"a":1}]`, `[null]`, `[`, `[,]`, `[1,2`, `{}`, `[[[]]] `, "", `["\ud800"]`, "[\"\xff\"]"} {
			f.Add(path, args)
		}
	}
	for _, path := range []string{"", "x", "x\x1f", "x\x1ff\x1f", "x\x1fdata\x1ft", "x\x1flist\x1f00", "x\x1f__proto__"} {
		f.Add(path, "[]")
	}
	f.Fuzz(func(t *testing.T, path, args string) {
		target, err := s.Resolve(path)
		if want := valid[path]; want == "" {
			if err != ErrNoTool || target.Tool != nil { //nolint:errorlint // one and the same
				t.Fatalf("%q leads to %v, %v", path, target.Tool, err)
			}
			return
		} else if err != nil || target.Tool.Name != want {
			t.Fatalf("%q leads to %v, %v, want %q", path, target.Tool, err, want)
		}
		input, err := target.Input(jsonRaw(args))
		if err != nil && len(err.Error()) > 1000 || err == nil && !json.Valid(input) {
			t.Fatalf("%q gives %.200s, %v", args, input, err)
		}
	})
}

// FuzzRaw: raw JSON arrives with the meaning that it has, or not at all.
func FuzzRaw(f *testing.F) {
	for _, s := range someRaw {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"\ud800":1,"\ud83d\ude42":"\udc00"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		node, _, err := one(t, map[string]any{"raw": jsonRaw(raw)})
		if err != nil || len(raw) == 0 {
			return
		}
		var n struct {
			V struct{ Raw jsonRaw } `json:"v"`
		}
		if err := json.Unmarshal([]byte(node), &n); err != nil {
			t.Fatal(err)
		}
		limits := jsontree.Limits{Depth: MaxDepth, Values: MaxValues, Work: math.MaxInt}
		before, err := jsontree.Parse(raw, limits)
		if err != nil {
			t.Fatalf("%q was taken: %v", raw, err)
		}
		after, err := jsontree.Parse(n.V.Raw, limits)
		if err != nil || !same(before, after) {
			t.Fatalf("%q became %q, %v", raw, n.V.Raw, err)
		}
	})
}

// same compares scalars by their bytes and objects by their keys.
func same(a, b *jsontree.Node) bool {
	if len(a.Items) != len(b.Items) || len(a.Members) != len(b.Members) {
		return false
	}
	for i := range a.Items {
		if !same(&a.Items[i], &b.Items[i]) {
			return false
		}
	}
	for i := range a.Members {
		other := b.Get(a.Members[i].Key)
		if other == nil || !same(&a.Members[i].Value, other) {
			return false
		}
	}
	if a.Kind == jsontree.Array || a.Kind == jsontree.Object {
		return a.Kind == b.Kind
	}
	if f, err := strconv.ParseFloat(string(a.Raw), 64); a.Kind == jsontree.Number && (err != nil || math.IsInf(f, 0)) {
		return b.Kind == jsontree.Null
	}
	return string(a.Raw) == string(b.Raw)
}
