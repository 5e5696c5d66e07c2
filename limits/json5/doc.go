// Package json5 reads JSON5 text into a tree that remembers where each value
// stood, so that whoever checks the values can point at the line.
//
//	v, err := json5.Parse([]byte(`{timeoutMs: 5_000}`)) // *SyntaxError: line 1, column 14
//	v, err = json5.Parse([]byte(`{timeoutMs: 0x1388}`))
//	v.Members[0].Value.Text                             // "5000"
//	data, err := v.JSON()                               // {"timeoutMs":5000}
//
// Numbers stay text: 9007199254740993 is not rounded and 1e400 is not infinite
// until somebody asks for a Go number. Key order is kept, and a key that is
// given twice is an error: in a configuration it is a mistake.
//
// Parse bounds nesting and the number of values; how many bytes it may be given
// is the caller's decision. Nothing here does I/O or keeps state.
//
// The grammar is https://spec.json5.org (version 1.0.0). The decoders for Go
// that we tried lacked parts of it (\x escapes, Unicode keys, byte order mark)
// and none of them keeps positions; see RATIONALE.md.
package json5
