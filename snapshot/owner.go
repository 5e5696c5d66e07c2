package snapshot

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Owner is the identity that owns a run (SPEC 12.4, 14.3). An empty field is one that
// nobody knew.
type Owner struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	AgentRunID string `json:"agentRunId,omitempty"`
}

// fields lists the parts of an owner in the order in which they are sealed.
func (o Owner) fields() [4]string {
	return [4]string{o.AgentID, o.SessionID, o.SessionKey, o.AgentRunID}
}

// Allows tells whether caller may touch what o owns: every field that o has must be the
// caller's, too. One that the caller lacks is a mismatch; one that only the caller has is
// not. An owner without any field allows everybody. The work is the same whatever the
// answer is: the time it takes tells nothing about how close a guess was (SPEC 12.4).
func (o Owner) Allows(caller Owner) bool {
	theirs := caller.fields()
	ok := 1
	for i, field := range o.fields() {
		a, b := sha256.Sum256([]byte(field)), sha256.Sum256([]byte(theirs[i]))
		same := subtle.ConstantTimeCompare(a[:], b[:])
		unknown := subtle.ConstantTimeEq(int32(len(field)), 0)
		ok &= same | unknown
	}
	return ok == 1
}

// Within tells whether o is part of what filter names: every field that filter has must be
// o's, too. It picks the runs of a session that is aborted (SPEC 14.2). A filter without
// any field names nothing, so that an abort that forgot to say whom ends nobody.
func (o Owner) Within(filter Owner) bool {
	return filter != Owner{} && filter.Allows(o)
}

// who names the owner for people: its agent and session where they are known.
func (o Owner) who() string {
	var parts []string
	if o.AgentID != "" {
		parts = append(parts, fmt.Sprintf("agent %q", o.AgentID))
	}
	if o.SessionID != "" {
		parts = append(parts, fmt.Sprintf("session %q", o.SessionID))
	} else if o.SessionKey != "" {
		parts = append(parts, fmt.Sprintf("session %q", o.SessionKey))
	}
	return strings.Join(parts, ", ")
}

// valid refuses what JSON would change on its way to the disk and back: the run would
// then be sealed for another owner than the one that is read.
func (o Owner) valid() bool {
	for _, field := range o.fields() {
		if !utf8.ValidString(field) {
			return false
		}
	}
	return true
}
