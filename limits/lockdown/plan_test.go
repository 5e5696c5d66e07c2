package lockdown

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

func TestPlanRoundTrip(t *testing.T) {
	for _, p := range []Plan{
		{},
		{User: true, Mount: true, ParentDeath: true, DataBytes: 1 << 40, CPUSeconds: 7, Without: []isolation.Layer{isolation.Seccomp, isolation.LandlockFiles}},
	} {
		got, err := Decode(p.Encode())
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("Decode(%s) = %+v, %v", p.Encode(), got, err)
		}
	}
}

// A worker that misread its plan would be less locked than its supervisor believes.
func TestDecodeRefuses(t *testing.T) {
	for s, word := range map[string]string{
		``:                         "EOF",
		`null`:                     "not one JSON object",
		`[]`:                       "array",
		`{} {}`:                    "not one JSON object",
		`{"user":1}`:               "number",
		`{"mounts":true}`:          `unknown field "mounts"`,
		`{"without":["secomp"]}`:   `"secomp"`,
		`{"data_bytes":-1}`:        "number",
		`{"cpu_seconds":1e99}`:     "number",
		`{"without":["landlock"]}`: "no layer",
	} {
		p, err := Decode(s)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("Decode(%q) = %+v, %v; want an error with %q", s, p, err, word)
		}
	}
}

// no_new_privs is what Landlock and seccomp stand on: it goes only with both.
func TestWithoutNoNewPrivs(t *testing.T) {
	nnp := isolation.NoNewPrivs
	if (Plan{Without: []isolation.Layer{nnp}}).without(nnp) {
		t.Error("left out under Landlock and seccomp")
	}
	if !(Plan{Without: isolation.Layers()}).without(nnp) {
		t.Error("not left out when everything is")
	}
	if (Plan{}).without(nnp) {
		t.Error("left out by nobody")
	}
}

func ExampleDecode() {
	p, err := Decode(`{"user":true,"mount":true,"parent_death":true}`)
	fmt.Println(p.User, p.Mount, p.ParentDeath, err)
	_, err = Decode(`{"usr":true}`)
	fmt.Println(err)
	// Output:
	// true true true <nil>
	// reading the lock-down plan "{\"usr\":true}": json: unknown field "usr"
}
