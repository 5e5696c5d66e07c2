package namespace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// maxArguments bounds what the arguments of one call cost beyond their bytes: eight
// megabytes are four million zeros.
const maxArguments = 100

// InputMapper makes a tool's input from the arguments of the guest's call, each of which
// is JSON. The input is checked against the tool's schema afterwards; none at all is {}.
// It is called for every call, by any number of goroutines at a time, and may keep and
// change its arguments. It must not change what it has returned.
type InputMapper func(args []json.RawMessage) (json.RawMessage, error)

// Marker stands in a scope for a function that calls a tool. [Tool] makes one.
type Marker struct {
	name    string
	mappers []InputMapper
}

// Tool returns a marker for one of the required tools of the namespace, by the tool's own
// name. It may stand wherever a value may, except at the root of the scope. At most one
// mapper may be given; without one (nil is none) the first argument of the call is the
// input of the tool (SPEC 8.3).
func Tool(name string, mapper ...InputMapper) Marker {
	return Marker{strings.TrimSpace(name), mapper}
}

// MarshalJSON fails: a marker that is encoded on its own would arrive as data, without
// anybody noticing. This happens below types that have a MarshalJSON themselves.
func (Marker) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a tool marker cannot be encoded as JSON: let it stand in maps, slices and structs that have no MarshalJSON, and do not embed it")
}

// mapper returns the marker's mapper, or nil if it has none.
func (m Marker) mapper() (InputMapper, error) {
	switch len(m.mappers) {
	case 0:
		return nil, nil
	case 1:
		return m.mappers[0], nil
	}
	return nil, fmt.Errorf("the marker for tool %q has %d input mappers; give it one that does it all", shorten(m.name), len(m.mappers))
}

// Input returns the input of the tool for a call with these arguments, a JSON array that
// comes from the guest. Without a mapper it is the first of them, and {} if there is none
// or it is null: in an array, JSON writes undefined as null (SPEC 4.3, 6.4). It is not
// checked against the tool's schema; [catalog.Tool.CheckInput] does that.
//
// Arguments that are no array, too large ([catalog.MaxInputBytes]) or too many (100), and
// a mapper that fails, panics or returns what is no JSON or too large are errors whose
// text is bounded and meant for the model: the tool must not be started.
func (t Target) Input(args json.RawMessage) (json.RawMessage, error) {
	list, err := split(args)
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s cannot be used: %w; the tool was not started", t.Place, err)
	}
	if t.mapper == nil {
		if len(list) == 0 || string(list[0]) == "null" {
			return json.RawMessage("{}"), nil
		}
		return list[0], nil
	}
	input, err := t.mapped(list)
	if err != nil {
		return nil, fmt.Errorf("the arguments of %s could not be made into the tool's input: %w; the tool was not started", t.Place, err)
	}
	return input, nil
}

// split returns the elements of a JSON array, in memory of their own.
func split(args json.RawMessage) ([]json.RawMessage, error) {
	if len(args) > catalog.MaxInputBytes {
		return nil, fmt.Errorf("they have %d bytes, at most %d are possible", len(args), catalog.MaxInputBytes)
	}
	args = bytes.TrimSpace(args)
	if len(args) == 0 {
		return nil, nil
	}
	if args[0] != '[' || !json.Valid(args) {
		return nil, errors.New("they are no JSON array")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	if _, err := d.Token(); err != nil { // [
		return nil, err
	}
	list := []json.RawMessage{}
	for d.More() {
		if len(list) == maxArguments {
			return nil, fmt.Errorf("they are more than %d", maxArguments)
		}
		var arg json.RawMessage
		if err := d.Decode(&arg); err != nil {
			return nil, err
		}
		list = append(list, arg)
	}
	return list, nil
}

// mapped calls the mapper and bounds whatever comes of it.
func (t Target) mapped(args []json.RawMessage) (input json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			input, err = nil, fmt.Errorf("the namespace's input mapper panicked: %s", shorten(fmt.Sprint(p)))
		}
	}()
	input, err = t.mapper(args)
	switch {
	case err != nil:
		return nil, errors.New(shorten(err.Error()))
	case len(input) > catalog.MaxInputBytes:
		return nil, fmt.Errorf("the namespace's input mapper returned %d bytes, at most %d are possible", len(input), catalog.MaxInputBytes)
	case len(bytes.TrimSpace(input)) == 0:
		return json.RawMessage("{}"), nil
	case !json.Valid(input):
		return nil, errors.New("the namespace's input mapper returned what is no JSON")
	}
	return input, nil
}
