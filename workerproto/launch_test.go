package workerproto

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 15.1: what a worker is told comes by its arguments, and only a supervisor's worker takes them.
func TestLaunch(t *testing.T) {
	cookie := CookieKey + "=" + CookieValue
	want := Launch{CacheDir: "/cache", Plan: "{}", Vars: []string{"A=b=c", cookie, "PLUGIN_UNIX_SOCKET_DIR=/run/x"}}
	for _, attack := range []bool{false, true} {
		sent := Launch{CacheDir: "/cache", Plan: "{}", Vars: want.Vars, Attack: attack, Spare: !attack}
		want.Attack, want.Spare = attack, !attack
		got, ok := ParseLaunch(sent.Args())
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("ok = %t, parsed (-want +got):\n%s", ok, diff)
		}
	}
	for _, argv := range [][]string{
		nil, {"qjs-worker"}, {WorkerName}, {WorkerName, "/cache", "{}"}, {WorkerName, "/cache", "{}", CookieKey + "=other"},
		{"qjs-worker", "/cache", "{}", cookie},
	} {
		if _, ok := ParseLaunch(argv); ok {
			t.Errorf("ParseLaunch(%q) took it for a supervisor's", argv)
		}
	}
	if got, want := want.Handshake(7), "1|7|unix|/run/x/none|netrpc|\n"; got != want {
		t.Errorf("the handshake is %q, want %q", got, want)
	}
}
