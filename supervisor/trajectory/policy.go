package trajectory

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// Keep is how much of a content is kept.
type Keep uint8

// What can be kept. The zero value is the default: enough to compare, not to read.
const (
	KeepDigest  Keep = iota // size and SHA-256; a hash of something short can be guessed
	KeepNothing             // not even that
	KeepContent             // all of it, up to [MaxContent]
)

// MaxContent bounds the content of one event. Of what is larger the digest is kept, so
// that [Read] can take back every line that was written.
const MaxContent = 8 << 20

// Part names the contents that events have.
type Part string

// The parts.
const (
	PartSource Part = "source" // of the cell; a JSON string, as are errors and notes
	PartInput  Part = "input"  // of a nested call
	PartResult Part = "result" // of a nested call
	PartOutput Part = "output" // an item
	PartValue  Part = "value"  // of the cell
	PartError  Part = "error"  // the text of a call's failure, or of the run's
	PartNote   Part = "note"   // what the cell said when it yielded, or why a call was stopped
	PartUpdate Part = "update" // what an executor told of a call
)

// Policy says what of the content is kept (SPEC 18.1). The zero value keeps size and hash
// of everything, and no content.
type Policy struct {
	Source, Input, Result, Output, Value, Error, Note, Update Keep

	// Tools are exceptions for nested calls. The first rule whose pattern the call's tool
	// id matches decides about its input, result and error. Updates are part of the result.
	Tools []ToolRule
}

// ToolRule is what is kept of the calls of some tools.
type ToolRule struct {
	// Pattern is a tool id in which * stands for any characters, such as mcp:github:*.
	Pattern string

	Input, Result, Error Keep
}

// All is the policy that treats every part alike.
func All(k Keep) Policy {
	return Policy{Source: k, Input: k, Result: k, Output: k, Value: k, Error: k, Note: k, Update: k}
}

// Of tells what is kept of a part. toolID is that of the nested call, or empty.
func (p Policy) Of(part Part, toolID string) Keep {
	if toolID != "" {
		for _, rule := range p.Tools {
			if words.Match(rule.Pattern, toolID) {
				return Policy{Input: rule.Input, Result: rule.Result, Error: rule.Error, Update: rule.Result, Note: rule.Error}.of(part)
			}
		}
	}
	return p.of(part)
}

func (p Policy) of(part Part) Keep {
	switch part {
	case PartSource:
		return p.Source
	case PartInput:
		return p.Input
	case PartResult:
		return p.Result
	case PartOutput:
		return p.Output
	case PartValue:
		return p.Value
	case PartError:
		return p.Error
	case PartNote:
		return p.Note
	case PartUpdate:
		return p.Update
	}
	return KeepNothing // nobody has decided about it
}

// describe makes the data of a content.
func describe(content []byte, k Keep) *Data {
	if k == KeepNothing {
		return nil
	}
	sum := sha256.Sum256(content)
	d := &Data{Bytes: len(content), SHA256: hex.EncodeToString(sum[:])}
	if k == KeepContent && len(content) <= MaxContent {
		d.Content = content
	}
	return d
}

// Redact hands events on to a sink that may know less than the recorder's policy keeps: a
// file beside a callback that has the contents, for example. It cannot bring back what the
// recorder did not keep.
func Redact(sink Sink, p Policy) Sink {
	return SinkFunc(func(e Event) error {
		if e.Data != nil {
			switch k := p.Of(e.Part(), e.ToolID); {
			case k == KeepNothing:
				e.Data = nil
			case k == KeepDigest && e.Data.Content != nil:
				e.Data = &Data{Bytes: e.Data.Bytes, SHA256: e.Data.SHA256}
			}
		}
		return sink.Write(e)
	})
}
