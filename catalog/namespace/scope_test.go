package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
)

type jsonRaw = json.RawMessage

func scopes(t testing.TB, r *Registry, c *catalog.Catalog) *Scopes {
	t.Helper()
	s, err := r.Build(t.Context(), c, Run{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one builds the scope of a namespace x alone and returns its NODE.
func one(t testing.TB, scope any) (string, *Scopes, error) {
	t.Helper()
	s, err := register(t, "p", of("x", scope)).Build(t.Context(), build(t), Run{})
	if err != nil {
		return "", nil, err
	}
	node, ok := strings.CutPrefix(string(s.JSON()), `[{"name":"x","value":`)
	if !ok || !json.Valid(s.JSON()) {
		t.Fatalf("the JSON is %s", s.JSON())
	}
	return strings.TrimSuffix(node, "}]"), s, nil
}

type person struct {
	Name   string
	Age    int    `json:"age"`
	Secret func() `json:"-"`
	hidden func()
	Nick   *string   `json:"nick,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Big    int64     `json:"big,string"`
	Call   Marker    `json:"call"`
	base
}

type base struct {
	Name string // hidden by person's
	Kind string `json:"kind"`
}

type bothWays struct{ X, Y any }

type textKey struct{ s string }

func (k textKey) MarshalText() ([]byte, error) { return []byte(k.s), nil }

type methods struct{ f func() ([]byte, error) }

func (m methods) MarshalJSON() ([]byte, error) { return m.f() }

type onPointer struct{ N int }

func (p *onPointer) MarshalJSON() ([]byte, error) { return []byte(fmt.Sprintf(`{"n":%d}`, p.N)), nil }

func returns(text string) methods {
	return methods{func() ([]byte, error) { return []byte(text), nil }}
}

// SPEC 8.3: what a scope becomes.
func TestScope(t *testing.T) {
	shared := map[string]any{"k": Tool("a")}
	nick := "n"
	tests := []struct {
		name  string
		scope any
		want  string
	}{
		{"empty", map[string]any{}, `{"v":{}}`},
		{"nothing but data", map[string]any{"b": []any{1, "x", nil, true}, "a": map[string]int{"z": 1, "y": 2}}, `{"v":{"a":{"y":2,"z":1},"b":[1,"x",null,true]}}`},
		{"a tool", map[string]any{"f": Tool("a")}, `{"o":[["f",{"t":true}]]}`},
		{"a tool behind pointers", map[string]any{"f": &[]*Marker{{name: "a"}}[0]}, `{"o":[["f",{"t":true}]]}`},
		{"tools among data", map[string]any{"z": Tool("b"), "list": []any{Tool("a"), 1, []int{2}}, "a": map[string]any{"b": 1}},
			`{"o":[["a",{"v":{"b":1}}],["list",{"a":[{"t":true},{"v":1},{"v":[2]}]}],["z",{"t":true}]]}`},
		{"data that looks like a tool", map[string]any{"f": map[string]any{"t": true}, "g": jsonRaw(`{"o":[["x",{"t":true}]]}`), "h": Tool("a")},
			`{"o":[["f",{"v":{"t":true}}],["g",{"v":{"o":[["x",{"t":true}]]}}],["h",{"t":true}]]}`},
		{"shared, no cycle", map[string]any{"a": shared, "b": []any{shared, shared}},
			`{"o":[["a",{"o":[["k",{"t":true}]]}],["b",{"a":[{"o":[["k",{"t":true}]]},{"o":[["k",{"t":true}]]}]}]]}`},
		{"a struct", person{Name: "x", Age: 3, Big: 5, Call: Tool("b"), base: base{"hidden", "k"}, hidden: func() {}},
			`{"o":[["Name",{"v":"x"}],["age",{"v":3}],["big",{"v":"5"}],["call",{"t":true}],["kind",{"v":"k"}]]}`},
		{"a pointer to one", &person{Nick: &nick, Call: Tool("b"), Since: time.Unix(0, 0).UTC()},
			`{"o":[["Name",{"v":""}],["age",{"v":0}],["big",{"v":"0"}],["call",{"t":true}],["kind",{"v":""}],["nick",{"v":"n"}],["since",{"v":"1970-01-01T00:00:00Z"}]]}`},
		{"raw JSON", jsonRaw(` {"b": [1, {"z":0,"y":1}] , "a":"\ud800\u0000<" } `), `{"v":{"a":"\ud800\u0000<","b":[1,{"y":1,"z":0}]}}`},
		{"empty raw JSON", map[string]any{"a": jsonRaw(nil), "b": jsonRaw{}, "c": (*jsonRaw)(nil)}, `{"v":{"a":null,"b":null,"c":null}}`},
		{"no numbers", map[string]any{"a": math.NaN(), "b": math.Inf(-1), "c": json.Number("1e400"), "d": jsonRaw("-1E+400"), "e": float32(math.Inf(1))},
			`{"v":{"a":null,"b":null,"c":null,"d":null,"e":null}}`},
		{"numbers", map[string]any{"a": uint64(math.MaxUint64), "b": json.Number("12345678901234567890123"), "c": float32(0.1), "d": 1e21, "e": json.Number(""), "f": big.NewInt(7), "g": uintptr(1)},
			`{"v":{"a":18446744073709551615,"b":12345678901234567890123,"c":0.1,"d":1e+21,"e":0,"f":7,"g":1}}`},
		{"texts", map[string]any{"a": "\xff<\u2028\x00", "b": []byte("hi"), "c": []byte(nil), "d": [2]byte{1, 2}}, `{"v":{"a":"\ufffd<\u2028\u0000","b":"aGk=","c":null,"d":[1,2]}}`},
		{"leaves with methods", map[string]any{"a": netip.MustParseAddr("::1"), "b": time.Duration(5), "c": returns(`{"k": [1]}`), "d": &onPointer{1}, "e": onPointer{2}, "f": []onPointer{{3}}, "g": (*onPointer)(nil)},
			`{"v":{"a":"::1","b":5,"c":{"k":[1]},"d":{"n":1},"e":{"N":2},"f":[{"n":3}],"g":null}}`},
		{"nothings", map[string]any{"a": map[string]any(nil), "b": []any(nil), "c": (*int)(nil), "d": error(nil), "e": []any{}}, `{"v":{"a":null,"b":null,"c":null,"d":null,"e":[]}}`},
		{"other keys", map[string]any{"a": map[int]int{2: 1, 10: 2}, "b": map[textKey]int{{"k"}: 1}, "c": map[string]int{"\x00\n": 1, "ä b": 2, "proto": 3}, "d": map[uint8]int{7: 1}},
			`{"v":{"a":{"10":2,"2":1},"b":{"k":1},"c":{"\u0000\n":1,"proto":3,"ä b":2},"d":{"7":1}}}`},
		{"words of objects as data", map[string]any{"then": 1, "toString": "x", "f": Tool("a")}, `{"o":[["f",{"t":true}],["then",{"v":1}],["toString",{"v":"x"}]]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := one(t, test.scope)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, _, err := one(t, test.scope); err != nil || again != got {
				t.Errorf("the second time it is %s, %v", again, err)
			}
		})
	}
}

// SPEC 8.3: what a scope may not hold; each error says where.
func TestRefused(t *testing.T) {
	selfMap := map[string]any{}
	selfMap["l"] = []any{map[string]any{"m": selfMap}}
	selfSlice := []any{nil}
	selfSlice[0] = selfSlice
	selfStruct := &bothWays{}
	selfStruct.X = selfStruct
	type loop *loop
	var selfPointer loop
	selfPointer = &selfPointer
	in := func(v any) map[string]any { return map[string]any{"deep": []any{0, map[string]any{"a b": v}}} }

	const here = `x.deep[1]["a b"]`
	tests := []struct {
		name        string
		scope       any
		place, want string
	}{
		{"nil", nil, "x", "must be an object"},
		{"a nil map", map[string]any(nil), "x", "must be an object"},
		{"a text", "x", "x", "must be an object"},
		{"an array", []any{Tool("a")}, "x", "must be an object"},
		{"a time", time.Now(), "x", "must be an object"},
		{"raw text", jsonRaw(`"x"`), "x", "must be an object"},
		{"a tool", Tool("a"), "x", "cannot be a tool itself"},

		{"a function", in(func() {}), here, "a function cannot cross to the guest; let it be a tool"},
		{"a nil function", in((func())(nil)), here, "a function cannot cross"},
		{"a function in a struct", in(bothWays{Y: func() {}}), here + ".Y", "a function cannot cross"},
		{"a channel", in(make(chan int)), here, "type chan int cannot cross"},
		{"a complex number", in(1i), here, "type complex128 cannot cross"},
		{"an unsafe pointer", in(unsafe.Pointer(nil)), here, "type unsafe.Pointer cannot cross"},

		{"a cycle of maps", selfMap, "x.l[0].m", "contains itself"},
		{"a cycle of slices", in(selfSlice), here + "[0]", "contains itself"},
		{"a cycle of structs", in(selfStruct), here + ".X", "contains itself"},
		{"a cycle of pointers", in(selfPointer), here, "contains itself"},

		{"__proto__", in(map[string]any{"__proto__": 1}), here + ".__proto__", `"__proto__" is refused`},
		{"constructor", in(map[string]any{"constructor": 1}), here + ".constructor", `"constructor" is refused`},
		{"prototype", in(map[string]any{"prototype": Tool("a")}), here + ".prototype", `"prototype" is refused`},
		{"by a tag", in(struct {
			F int `json:"constructor"`
		}{}), here + ".constructor", "is refused"},
		{"an empty key", in(map[string]any{"": 1}), here + `[""]`, "an empty key"},
		{"the separator", in(map[string]any{"a\x1fb": 1}), here + `["a\x1fb"]`, "U+001F"},
		{"a broken key", in(map[string]any{"a\xff": 1}), here + "[\"a\ufffd\"]", "no valid Unicode"},
		{"at the root", map[string]any{"__proto__": 1}, "x.__proto__", "is refused"},

		{"__proto__ in raw JSON", in(jsonRaw(`[{"a":{"__proto__":1}}]`)), here + "[0].a.__proto__", `"__proto__" is refused`},
		{"escaped", in(jsonRaw(`{"\u005f_proto__":1}`)), here + ".__proto__", `"__proto__" is refused`},
		{"by a method", in(returns(`{"constructor":1}`)), here + ".constructor", `"constructor" is refused`},
		{"the separator in raw JSON", in(jsonRaw(`{"a\u001fb":1}`)), here + `["a\x1fb"]`, "U+001F"},
		{"half a pair in raw JSON", in(jsonRaw(`{"\ud800":1}`)), here + "[\"\ufffd\"]", "half a surrogate pair"},
		{"a key twice in raw JSON", in(jsonRaw(`{"a":1,"\u0061":2}`)), here, "given twice"},
		{"raw text that is none", in(jsonRaw(`{"a"`)), here, "this JSON cannot be used"},
		{"raw bytes", in(jsonRaw("\"\xff\"")), here, "not UTF-8"},
		{"a number that is none", in(json.Number("1x")), here, "this JSON cannot be used"},
		{"keys that become one", in(map[*pairKey]any{{"k"}: 1, {"k"}: 2}), here + ".k", "two keys of one object are the same text"},
		{"keys of pointers", in(map[*int]any{nil: 1}), here, "keys of type *int"},
		{"keys of any type", in(map[any]any{"k": 1}), here, "keys of type interface {}"},
		{"a tool as a key", in(map[*Marker]any{{}: 1}), here, "a tool marker cannot be a key"},

		{"another tool", in(Tool("c")), here, `tool "c" is not in the RequiredTools`},
		{"an id", in(Tool("plugin:p:a")), here, `not in the RequiredTools`},
		{"no tool", in(Marker{}), here, `tool "" is not in the RequiredTools`},
		{"two mappers", in(Tool("a", nil, nil)), here, "has 2 input mappers"},
		{"a tool that is awaited", map[string]any{"then": Tool("a")}, "x.then", `a tool at the key "then" is refused`},
		{"a tool that converts", in(map[string]any{"toJSON": Tool("a")}), here + ".toJSON", `is refused`},
		{"a tool within methods", in(struct{ Marker }{Tool("a")}), here, "a tool marker cannot be encoded"},
		{"a long path", map[string]any{strings.Repeat("k", 1023): Tool("a")}, "", "path to this tool has 1025 bytes"},

		{"a method that fails", in(methods{func() ([]byte, error) { return nil, errors.New("no luck") }}), here, "no luck"},
		{"a method that panics", in(methods{func() ([]byte, error) { panic("no luck") }}), here, "panicked: no luck"},
		{"a method that returns no JSON", in(returns("{")), here, "it cannot be encoded"},
		{"a key that is no address", in(map[netip.Addr]any{netip.Addr{}: 1}), here + `[""]`, "an empty key"},
		{"a key that is nil", in(map[*pairKey]any{nil: 1}), here + `[""]`, "an empty key"},
		{"a year past JSON", in(map[time.Time]any{time.Unix(1<<40, 0): 1}), here, "a key of this map cannot be encoded"},
		{"a key that panics", in(map[*nilText]any{{}: 1}), here, "panicked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := one(t, test.scope)
			var refused *ScopeError
			if !errors.As(err, &refused) {
				t.Fatalf("got %s, %v, want an error", got, err)
			}
			if refused.PluginID != "p" || refused.GlobalName != "x" || test.place != "" && refused.Place != test.place || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2000 {
				t.Errorf("at %q: %v, want at %q: %q", refused.Place, err, test.place, test.want)
			}
		})
	}
}

type nilText struct{}

func (*nilText) MarshalText() ([]byte, error) { panic("no text") }

type pairKey struct{ s string }

func (k *pairKey) MarshalText() ([]byte, error) { return []byte(k.s), nil }

// The bounds hold to the last value, and whatever is shared.
func TestBounds(t *testing.T) {
	nested := func(levels int) any {
		var v any = 1
		for range levels {
			v = []any{v}
		}
		return map[string]any{"a": v}
	}
	laughs := any("ha")
	for range 60 {
		laughs = []any{laughs, laughs}
	}
	laughing := map[string]any{"l": "ha"}
	for range 60 {
		laughing = map[string]any{"l": laughing, "m": laughing}
	}
	kilobytes := strings.Repeat("x", 1<<10)
	var chain any = 1
	for range 20_000 {
		inner := chain
		chain = &inner
	}
	repeat := func(n int, v any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = v
		}
		return list
	}
	tests := []struct {
		name  string
		scope any
		want  string
	}{
		{"most values", map[string]any{"a": make([]int, 9_998)}, ""},
		{"one more", map[string]any{"a": make([]int, 9_999)}, "more than 10000 values"},
		{"most values, raw", jsonRaw(`{"a":[0` + strings.Repeat(",0", 9_996) + `]}`), ""},
		{"one more, raw", jsonRaw(`{"a":[0` + strings.Repeat(",0", 9_997) + `]}`), "more than 10000 values"},
		{"an enormous array", map[string]any{"a": [1 << 40]struct{}{}}, "more than 10000 values"},
		{"an enormous slice", map[string]any{"a": make([]struct{}, 1<<40)}, "more than 10000 values"},
		{"deepest", nested(63), ""},
		{"one deeper", nested(64), "deeper than 64 levels"},
		{"deepest, raw", map[string]any{"a": jsonRaw(strings.Repeat("[", 63) + strings.Repeat("]", 63))}, ""},
		{"one deeper, raw", map[string]any{"a": jsonRaw(strings.Repeat("[", 64) + strings.Repeat("]", 64))}, "deeper than 64 levels"},
		{"bottomless, raw", map[string]any{"a": jsonRaw(strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000))}, "this JSON cannot be used"},
		{"a chain of pointers", map[string]any{"a": chain}, "more than 10000 values"},
		{"billion laughs in slices", map[string]any{"a": laughs}, "more than 10000 values"},
		{"billion laughs in maps", laughing, "more than 10000 values"},
		{"billion laughs in methods", map[string]any{"a": repeat(9_000, returns(`[`+strings.Repeat("0,", 999)+`0]`))}, "more than 10000 values"},
		{"much text", map[string]any{"a": repeat(1000, kilobytes)}, ""},
		{"more text", map[string]any{"a": repeat(1025, kilobytes)}, "bytes of JSON"},
		{"one text", map[string]any{"a": strings.Repeat("x", 1<<20)}, "bytes of JSON"},
		{"text that grows", map[string]any{"a": strings.Repeat("\x00", 1<<19)}, "its JSON has 3145"},
		{"one slice of bytes", map[string]any{"a": make([]byte, 1<<20)}, "bytes of JSON"},
		{"long keys", map[string]any{"a": repeat(1100, map[string]int{kilobytes: 1})}, "bytes of JSON"},
		{"spaces, shared", map[string]any{"a": repeat(9_000, jsonRaw(strings.Repeat(" ", 1<<19)+"1"))}, "bytes of JSON"},
		{"much raw", map[string]any{"a": jsonRaw(`"` + strings.Repeat("x", 1<<20) + `"`)}, "bytes of JSON"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			started := time.Now()
			got, s, err := one(t, test.scope)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got %.80s, %v, want %q", got, err, test.want)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if s != nil && len(s.JSON()) > MaxBytes {
				t.Errorf("%d bytes of JSON", len(s.JSON()))
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// MaxBytes is for all the namespaces of a run; the one that goes over it is named.
func TestBoundOfAll(t *testing.T) {
	half := map[string]any{"a": strings.Repeat("x", 600_000)}
	_, err := register(t, "p", of("one", half), of("two", half)).Build(t.Context(), build(t), Run{})
	if err == nil || !strings.Contains(err.Error(), `namespace "two"`) || !strings.Contains(err.Error(), "and with that of the namespaces before it 12000") {
		t.Errorf("got %v", err)
	}
}

// SPEC 8.1: the Scope function gets the run's identity, is called in order, and can fail.
func TestScopeFunction(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lost := errors.New("lost")
	tests := []struct {
		name  string
		ctx   context.Context
		scope func(context.Context, Run) (any, error)
		want  string
		is    error
	}{
		{"fails", t.Context(), func(context.Context, Run) (any, error) { return nil, lost }, "its Scope function: lost", lost},
		{"fails at length", t.Context(), func(context.Context, Run) (any, error) { return nil, errors.New(strings.Repeat("\xff", 1<<20)) }, "its Scope function", nil},
		{"panics", t.Context(), func(context.Context, Run) (any, error) { panic(strings.Repeat("no luck ", 1000)) }, "Scope function panicked: no luck", nil},
		{"panics with nil", t.Context(), func(context.Context, Run) (any, error) { panic(nil) }, "Scope function panicked", nil},
		{"run ended before", ended, func(context.Context, Run) (any, error) { panic("called") }, "the run ended before", context.Canceled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := of("x", nil)
			n.Scope = test.scope
			_, err := register(t, "p", n).Build(test.ctx, build(t), Run{})
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) || len(err.Error()) > 2000 {
				t.Errorf("got %.300v, want %q", err, test.want)
			}
		})
	}

	t.Run("run ended meanwhile", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := of("x", nil)
		n.Scope = func(context.Context, Run) (any, error) { cancel(); return map[string]any{}, nil }
		if _, err := register(t, "p", n).Build(ctx, build(t), Run{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("in order", func(t *testing.T) {
		run := Run{AgentID: "agent", SessionID: "s", SessionKey: "k", AgentRunID: "r1", RunID: "r2", Config: jsonRaw(`{"a":1}`)}
		var order []string
		var list []Namespace
		for _, name := range []string{"c", "a", "b"} {
			n := of(name, nil)
			n.Scope = func(_ context.Context, got Run) (any, error) {
				order = append(order, name)
				if diff := cmp.Diff(run, got); diff != "" {
					t.Errorf("%s got another run (-want +got):\n%s", name, diff)
				}
				got.Config[0] = '!' // its own copy
				return map[string]any{}, nil
			}
			list = append(list, n)
		}
		s, err := register(t, "p", list...).Build(t.Context(), build(t), run)
		if err != nil {
			t.Fatal(err)
		}
		const want = `[{"name":"a","value":{"v":{}}},{"name":"b","value":{"v":{}}},{"name":"c","value":{"v":{}}}]`
		if got := string(s.JSON()); got != want || strings.Join(order, "") != "abc" {
			t.Errorf("called in the order %q, got %s", order, got)
		}
	})
}

// What Build wrote down does not change with the plugin's own value.
func TestScopeIsCopied(t *testing.T) {
	raw := jsonRaw(`{"k":"before"}`)
	data := map[string]any{"raw": raw, "f": Tool("a"), "list": []any{1}}
	_, s, err := one(t, data)
	if err != nil {
		t.Fatal(err)
	}
	before := string(s.JSON())
	copy(raw, `{"k":"after!"}`)
	delete(data, "f")
	if string(s.JSON()) != before {
		t.Errorf("it became %s", s.JSON())
	}
	if _, err := s.Resolve("x\x1ff"); err != nil {
		t.Error(err)
	}
}
