package snapshot

import "testing"

func TestOwnerAllows(t *testing.T) {
	full := Owner{AgentID: "a", SessionID: "s", SessionKey: "k", AgentRunID: "r"}
	tests := []struct {
		name          string
		owner, caller Owner
		want          bool
	}{
		{"same", full, full, true},
		{"nobody's", Owner{}, full, true},
		{"nobody's, by nobody", Owner{}, Owner{}, true},
		{"caller knows more", Owner{AgentID: "a"}, full, true},
		{"caller knows less", full, Owner{AgentID: "a", SessionID: "s", SessionKey: "k"}, false},
		{"caller is nobody", full, Owner{}, false},
		{"other agent", full, Owner{AgentID: "b", SessionID: "s", SessionKey: "k", AgentRunID: "r"}, false},
		{"other run", full, Owner{AgentID: "a", SessionID: "s", SessionKey: "k", AgentRunID: "R"}, false},
		{"longer", Owner{AgentID: "a"}, Owner{AgentID: "aa"}, false},
		{"in another field", Owner{SessionID: "a"}, Owner{SessionKey: "a"}, false},
	}
	for _, tt := range tests {
		if got := tt.owner.Allows(tt.caller); got != tt.want {
			t.Errorf("%s: %+v allows %+v: got %v, want %v", tt.name, tt.owner, tt.caller, got, tt.want)
		}
	}
}

func TestOwnerWithin(t *testing.T) {
	o := Owner{AgentID: "a", SessionID: "s"}
	tests := []struct {
		filter Owner
		want   bool
	}{
		{Owner{}, false},
		{Owner{AgentID: "a"}, true},
		{Owner{SessionID: "s"}, true},
		{o, true},
		{Owner{SessionID: "t"}, false},
		{Owner{AgentID: "a", AgentRunID: "r"}, false},
	}
	for _, tt := range tests {
		if got := o.Within(tt.filter); got != tt.want {
			t.Errorf("%+v within %+v: got %v, want %v", o, tt.filter, got, tt.want)
		}
	}
	if (Owner{}).Within(Owner{}) {
		t.Error("an owner without identity is within a filter that names nobody")
	}
}
