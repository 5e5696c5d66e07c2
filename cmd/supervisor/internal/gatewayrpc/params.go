package gatewayrpc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object reads a JSON object of the client's, strictly: names as they are spelt, no unknown
// ones, no null in place of a value. The first fault is kept, and what is read after it is empty.
// encoding/json would take "Handle" for "handle", and null for anything.
type object struct {
	path    string
	members map[string]json.RawMessage
	known   []string
	err     *error // shared with the objects in it
}

// readObject begins with an object. The caller ends with [object.end].
func readObject(path string, raw json.RawMessage) *object {
	o := &object{path: path, err: new(error)}
	if raw != nil {
		o.read(raw)
	}
	return o
}

func (o *object) read(raw json.RawMessage) {
	if raw[0] != '{' {
		o.fail("%s is %s; it must be an object", o.path, kindOf(raw))
		return
	}
	if err := json.Unmarshal(raw, &o.members); err != nil {
		o.fail("%s cannot be read: %v", o.path, err)
	}
}

func (o *object) fail(format string, args ...any) {
	if *o.err == nil {
		*o.err = fault(codeInvalidParams, "", format, args...)
	}
}

// at names a member.
func (o *object) at(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

// raw gives a member as it is, or nil.
func (o *object) raw(key string) json.RawMessage {
	o.known = append(o.known, key)
	if *o.err != nil {
		return nil
	}
	return o.members[key]
}

// value gives a member that must be there, whatever it is.
func (o *object) value(key string) json.RawMessage {
	raw := o.raw(key)
	if raw == nil && *o.err == nil {
		o.missing(key)
	}
	return raw
}

// missing waits for the unknown names, which say more: handel in place of handle.
func (o *object) missing(key string) {
	for name := range o.members {
		if near := meant(name, []string{key}); !slices.Contains(o.known, name) && strings.HasPrefix(near, "; did") {
			o.fail("%s is unknown%s", o.at(clip(name, 60)), near)
			return
		}
	}
	o.fail("%s is missing", o.at(key))
}

func (o *object) optionalText(key string) (s string) {
	raw := o.raw(key)
	if raw == nil {
		return ""
	}
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		o.fail("%s is %s; it must be a string", o.at(key), kindOf(raw))
	}
	return s
}

// text gives a text that must be there, and not be empty.
func (o *object) text(key string) string {
	if o.value(key) == nil {
		return ""
	}
	s := o.optionalText(key)
	if s == "" {
		o.fail("%s is empty", o.at(key))
	}
	return s
}

// oneOf gives one of some words, or "" if it is not there.
func (o *object) oneOf(key string, words ...string) string {
	s := o.optionalText(key)
	if o.members[key] != nil && !slices.Contains(words, s) {
		o.fail("%s is %q%s", o.at(key), clip(s, 60), meant(s, words))
	}
	return s
}

func (o *object) boolean(key string) bool {
	raw := o.raw(key)
	switch string(raw) {
	case "true", "false", "":
	default:
		o.fail("%s is %s; it must be true or false", o.at(key), kindOf(raw))
	}
	return string(raw) == "true"
}

// number gives a whole number that must be there.
func (o *object) number(key string) (n int) {
	raw := o.value(key)
	if raw != nil && (raw[0] == 'n' || json.Unmarshal(raw, &n) != nil) {
		o.fail("%s is %s; it must be a whole number", o.at(key), quote(raw))
	}
	return n
}

// object gives an object in it; one that is not there is empty.
func (o *object) object(key string) *object {
	sub := &object{path: o.at(key), err: o.err}
	if raw := o.raw(key); raw != nil {
		sub.read(raw)
	}
	return sub
}

// list calls f for each element of a list.
func (o *object) list(key string, most int, f func(path string, element json.RawMessage)) {
	raw := o.raw(key)
	if raw == nil {
		return
	}
	var elements []json.RawMessage
	switch {
	case raw[0] != '[':
		o.fail("%s is %s; it must be an array", o.at(key), kindOf(raw))
	case json.Unmarshal(raw, &elements) != nil:
		o.fail("%s cannot be read", o.at(key))
	case len(elements) > most:
		o.fail("%s has %d elements, at most %d are possible", o.at(key), len(elements), most)
	default:
		for i, e := range elements {
			if *o.err != nil {
				return
			}
			f(fmt.Sprintf("%s[%d]", o.at(key), i), e)
		}
	}
}

// objects calls f for each element of a list of objects.
func (o *object) objects(key string, most int, f func(*object)) {
	o.list(key, most, func(path string, element json.RawMessage) {
		sub := &object{path: path, err: o.err}
		sub.read(element)
		if f(sub); *o.err == nil {
			sub.unknown()
		}
	})
}

func (o *object) texts(key string, most int) (all []string) {
	o.list(key, most, func(path string, element json.RawMessage) {
		var s string
		if element[0] != '"' || json.Unmarshal(element, &s) != nil {
			o.fail("%s is %s; it must be a string", path, kindOf(element))
		}
		all = append(all, s)
	})
	return all
}

// unknown refuses the members that nobody asked for.
func (o *object) unknown() {
	for name := range o.members {
		if !slices.Contains(o.known, name) {
			o.fail("%s is unknown%s", o.at(clip(name, 60)), meant(name, o.known))
		}
	}
}

// end gives what is wrong with all of it.
func (o *object) end() error {
	if o.unknown(); *o.err != nil {
		return *o.err
	}
	return nil
}

func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
