package supervisor

// EscapeResult is what came of the attempts to leave the guest by its own language.
type EscapeResult struct {
	// Attempts are the tricks that were tried, each with how it went.
	Attempts []EscapeAttempt
	// Reachable counts what a guest's program can reach: objects, functions, accessors.
	Reachable int
	// Added and Missing compare that with the list that was looked through by people.
	Added, Missing []string
}

// EscapeAttempt is one trick, and how it went.
type EscapeAttempt struct {
	Name    string `json:"name"`
	Escaped bool   `json:"escaped"`
	Detail  string `json:"detail,omitempty"`
}

// Escaped counts the attempts that succeeded.
func (r EscapeResult) Escaped() int {
	n := 0
	for _, a := range r.Attempts {
		if a.Escaped {
			n++
		}
	}
	return n
}

