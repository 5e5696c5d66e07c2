package namespace

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type (
	Twice1 struct{ Same }
	Twice2 struct{ Same }
	Same   struct{ V, W int }
	L1     struct {
		R int `json:"R"`
		M int `json:"m"`
	}
	L2 struct {
		R int
		M int
	}
	Ring  struct{ *Ring2 }
	Ring2 struct {
		*Ring
		V int
	}
	Words   []string
	private struct{ V int }
	number  int
)

// Structs have the members that encoding/json gives them.
func TestFields(t *testing.T) {
	one1 := 1
	for _, v := range []any{
		struct {
			Twice1
			Twice2
		}{},
		struct {
			Twice1
			Twice2
			V string
		}{V: "x"},
		struct {
			L1
			L2
		}{},
		struct {
			Twice1
			Same
		}{},
		Ring{&Ring2{V: 1}},
		Ring{},
		struct{ Words }{Words{"a"}},
		struct {
			Words `json:"words,omitempty"`
		}{},
		struct{ private }{private{1}},
		struct{ *private }{&private{1}},
		struct{ *private }{},
		struct {
			private `json:"named"`
		}{private{1}},
		struct{ number }{1},
		struct{ fmt.Stringer }{},
		struct{ P **int }{},
		struct {
			P *int    `json:",string"`
			B bool    `json:",string"`
			R string  `json:",string"`
			U uintptr `json:",string"`
			N *string `json:",string"`
			J json.Number
			K json.Number `json:",string"`
			L loud        `json:",string"`
		}{P: &one1, R: `"<`, J: "1", K: "2"},
		struct {
			A any            `json:",omitempty"`
			B map[string]int `json:",omitempty"`
			C [0]int         `json:",omitempty"`
			D struct{}       `json:",omitempty"`
			E time.Time      `json:",omitempty"`
			F *int           `json:",omitempty"`
			G float32        `json:",omitempty"`
			H []int          `json:",omitempty"`
			I string         `json:",omitempty"`
			J bool           `json:",omitempty"`
		}{B: map[string]int{}, H: []int{}},
		struct {
			A any                        `json:",omitzero"`
			B map[string]int             `json:",omitzero"`
			C time.Time                  `json:",omitzero"`
			D *time.Time                 `json:",omitzero"`
			E zeroes                     `json:",omitzero"`
			F zeroes                     `json:",omitzero"`
			G *zeroes                    `json:",omitzero"`
			H pointed                    `json:",omitzero"`
			I pointed                    `json:",omitzero"`
			J func()                     `json:",omitzero"`
			K any                        `json:",omitzero"`
			L struct{ A [2]int }         `json:",omitzero"`
			M interface{ IsZero() bool } `json:",omitzero"`
			N interface{ IsZero() bool } `json:",omitzero"`
		}{B: map[string]int{}, E: zeroes{7}, G: &zeroes{7}, I: pointed{7}, K: zeroes{7}, M: (*pointed)(nil), N: zeroes{7}},
		withTags(`json:"a,"`, `json:"ä/!"`, `json:"\\"`, `json:"\"bad\""`, `json:"-,"`, `json:"-"`, `json:",unknown,omitempty"`, `other:"x"`, `json:"g" xml:"f"`, `json:"' '"`),
		struct{ V any }{withTags(`json:",string"`, `json:",omitzero,string"`, `json:"b,string,"`)},
	} {
		want, err := encode(map[string]any{"v": v}) // without HTML escapes, which "string" would escape again
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{v, pointerTo(v)} {
			got, _, err := one(t, map[string]any{"v": v})
			if err != nil {
				t.Errorf("%T: %v", v, err)
				continue
			}
			if diff := cmp.Diff(plain(t, want), decode(t, jsonRaw(got), "x")); diff != "" {
				t.Errorf("%T (-want +got):\n%s", v, diff)
			}
		}
	}
}

type pointed struct{ N int }

func (p *pointed) IsZero() bool { return p.N == 7 }

// withTags returns a struct of integers with tags that linters would not let stand.
func withTags(tags ...string) any {
	var fields []reflect.StructField
	for i, tag := range tags {
		fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: reflect.TypeFor[int](), Tag: reflect.StructTag(tag)})
	}
	return reflect.New(reflect.StructOf(fields)).Elem().Interface()
}

type loud int

func (loud) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func pointerTo(v any) any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}
