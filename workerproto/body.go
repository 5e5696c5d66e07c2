package workerproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// ErrRefused is wrapped by the error of a message that breaks the rules of its type.
// Nothing of it was sent.
var ErrRefused = errors.New("message refused")

// Append appends m's frame to b. A message that breaks the rules of its type is an
// error and appends nothing.
func Append(b []byte, m Message) ([]byte, error) {
	if reason := m.check(); reason != "" {
		return b, fmt.Errorf("%w: %s frame: %s", ErrRefused, m.Type(), reason)
	}
	start := len(b)
	buf := bytes.NewBuffer(append(b, magic0, magic1, Version, byte(m.Type()), 0, 0, 0, 0))
	if err := msgpack.NewEncoder(buf).Encode(m); err != nil {
		return b, fmt.Errorf("encoding a %s frame: %w", m.Type(), err)
	}
	frame := buf.Bytes()
	body := len(frame) - start - headerBytes
	if limit := kinds[m.Type()].maxBody; body > int(limit) {
		return b, fmt.Errorf("%w: %s frame: %d bytes, at most %d are allowed", ErrRefused, m.Type(), body, limit)
	}
	binary.BigEndian.PutUint32(frame[start+4:], uint32(body))
	return frame, nil
}

// decode reads a body that is already bounded by its type. The message keeps body.
func decode(t Type, body []byte) (Message, error) {
	m := kinds[t].new()
	d := newDecoder(body)
	if reason := d.fields(reflect.ValueOf(m).Elem()); reason != "" {
		return nil, &Violation{t, reason}
	}
	if n := d.rest.Len(); n != 0 {
		return nil, &Violation{t, fmt.Sprintf("%d bytes behind the message", n)}
	}
	if reason := m.check(); reason != "" {
		return nil, &Violation{t, reason}
	}
	return m, nil
}

// decoder takes the library's tokens and decides itself which may stand where. The
// library's way to fill a struct is not made for an enemy: it allocates 4 GiB because a
// length says so, wraps a number that does not fit, takes nil and arrays for structs
// and text for bytes, and of two equal keys keeps the last.
type decoder struct {
	body   []byte
	rest   *bytes.Reader // of body; the library reads no byte ahead of a ByteScanner
	tokens *msgpack.Decoder
}

func newDecoder(body []byte) *decoder {
	rest := bytes.NewReader(body)
	return &decoder{body, rest, msgpack.NewDecoder(rest)}
}

// What the library says when it fails is always this one: each token's code was looked
// at before.
const ends = "the body ends inside of a value"

// fields fills v, a struct, from a map that has each of its fields once and nothing
// else. It gives the rule that is broken, or "". So do the methods it calls.
func (d *decoder) fields(v reflect.Value) string {
	code, err := d.tokens.PeekCode()
	if err != nil {
		return ends
	}
	if !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 {
		return fmt.Sprintf("code %#02x where a map is due", code)
	}
	n, err := d.tokens.DecodeMapLen()
	if err != nil {
		return ends
	}
	seen := make([]bool, v.NumField())
	for range n { // a big n costs nothing: one key too many is unknown or a second one
		key, reason := d.text("a key")
		if reason != "" {
			return reason
		}
		i := fieldIndex(v.Type(), key)
		switch {
		case i < 0:
			return fmt.Sprintf("unknown field %.40q", key)
		case seen[i]:
			return fmt.Sprintf("field %s twice", key)
		}
		seen[i] = true
		if reason := d.value(key, v.Field(i)); reason != "" {
			return reason
		}
	}
	for i, ok := range seen {
		if !ok {
			return fmt.Sprintf("field %s is missing", fieldName(v.Type(), i))
		}
	}
	return ""
}

func fieldName(t reflect.Type, i int) string { return t.Field(i).Tag.Get("msgpack") }

func fieldIndex(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if fieldName(t, i) == name {
			return i
		}
	}
	return -1
}

// value fills v, a field, from the msgpack type of its kind.
func (d *decoder) value(name string, v reflect.Value) (reason string) {
	switch v.Kind() {
	case reflect.Struct:
		return d.fields(v)
	case reflect.String:
		var s string
		s, reason = d.text(name)
		v.SetString(s)
	case reflect.Slice:
		var b []byte
		b, reason = d.binary(name)
		v.SetBytes(b)
	case reflect.Bool:
		code, err := d.tokens.PeekCode()
		if err != nil {
			return ends
		}
		if code != msgpcode.True && code != msgpcode.False {
			return notA("a bool", name, code)
		}
		b, _ := d.tokens.DecodeBool()
		v.SetBool(b)
	default:
		return d.uint(name, v)
	}
	return reason
}

func (d *decoder) uint(name string, v reflect.Value) string {
	code, err := d.tokens.PeekCode()
	if err != nil {
		return ends
	}
	if code > msgpcode.PosFixedNumHigh && (code < msgpcode.Uint8 || code > msgpcode.Uint64) {
		return notA("an unsigned number", name, code)
	}
	n, err := d.tokens.DecodeUint64()
	if err != nil {
		return ends
	}
	if v.OverflowUint(n) {
		return fmt.Sprintf("%s is %d, which does not fit into a %s", name, n, v.Kind())
	}
	v.SetUint(n)
	return ""
}

func (d *decoder) text(name string) (s, reason string) {
	code, err := d.tokens.PeekCode()
	if err != nil {
		return "", ends
	}
	if !msgpcode.IsFixedString(code) && (code < msgpcode.Str8 || code > msgpcode.Str32) {
		return "", notA("text", name, code)
	}
	b, reason := d.take()
	return string(b), reason
}

func (d *decoder) binary(name string) (b []byte, reason string) {
	code, err := d.tokens.PeekCode()
	if err != nil {
		return nil, ends
	}
	// The library writes an empty slice that is nil as nil.
	if code != msgpcode.Nil && (code < msgpcode.Bin8 || code > msgpcode.Bin32) {
		return nil, notA("bytes", name, code)
	}
	return d.take()
}

// take gives what a length stands before: a part of the body, not a copy.
func (d *decoder) take() (b []byte, reason string) {
	n, err := d.tokens.DecodeBytesLen()
	if err != nil || n > d.rest.Len() {
		return nil, ends
	}
	if n <= 0 {
		return nil, "" // nil, too: nobody shall tell the two apart
	}
	at := len(d.body) - d.rest.Len()
	_, _ = d.rest.Seek(int64(n), io.SeekCurrent) // within the body
	return d.body[at : at+n : at+n], ""
}

func notA(what, name string, code byte) string {
	return fmt.Sprintf("%s is not %s but has code %#02x", name, what, code)
}
