package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// cutItem gives the JSON string of what fits of an item into left bytes of budget, and
// how many bytes of its JSON were left out. A json item cannot be cut and stay JSON of
// its kind: what fits is the beginning of its text.
func cutItem(item guest.Item, left uint64) (cut []byte, omitted uint64) {
	full := uint64(len(item.JSON))
	frame := workerproto.ItemCost("text", nil) + 2 // quotes
	if left <= frame {
		return nil, full
	}
	s := item.JSON
	if item.Kind == "json" {
		s = quote(string(item.JSON[:min(len(item.JSON), int(left))]))
	}
	cut = cutString(s, int(left-workerproto.ItemCost("text", nil)))
	if len(cut) <= 2 {
		return nil, full
	}
	if item.Kind == "text" {
		return cut, full - uint64(len(cut))
	}
	var kept string
	_ = json.Unmarshal(cut, &kept) // a JSON string by construction
	return cut, full - uint64(len(kept))
}

// cutString shortens a JSON string, quotes included, to at most n bytes, at a character
// boundary: neither inside an escape nor inside a surrogate pair or a UTF-8 sequence.
func cutString(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	if n < 2 {
		return nil
	}
	end := 1
	for end < n-1 {
		next := end + charLen(s[end:])
		if next > n-1 {
			break
		}
		end = next
	}
	return append(bytes.Clone(s[:end]), '"')
}

// charLen is the length of the character that a JSON string's inside begins with. A
// pair of surrogate escapes is one character.
func charLen(s []byte) int {
	if s[0] != '\\' {
		_, n := utf8.DecodeRune(s)
		return n
	}
	if len(s) < 6 || s[1] != 'u' {
		return 2
	}
	high := s[2]|0x20 == 'd' && (s[3] == '8' || s[3] == '9' || s[3]|0x20 == 'a' || s[3]|0x20 == 'b')
	if high && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		return 12
	}
	return 6
}

// cutNote gives what fits of a note, up to a character boundary.
func cutNote(note string) string {
	note = strings.ToValidUTF8(note, "\ufffd")
	if len(note) > workerproto.MaxNote {
		note = strings.ToValidUTF8(note[:workerproto.MaxNote], "")
	}
	return note
}

// quote makes a JSON string of text, without HTML escapes.
func quote(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// cutText shortens text so that its JSON has at most n bytes.
func cutText(text string, n int) (cut string, omitted int) {
	q := quote(text)
	if len(q) <= n {
		return text, 0
	}
	c := cutString(q, max(2, n))
	_ = json.Unmarshal(c, &cut) // c is a JSON string by construction
	return cut, len(text) - len(cut)
}
