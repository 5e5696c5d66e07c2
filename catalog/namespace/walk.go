package namespace

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

var (
	markerType  = reflect.TypeFor[Marker]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	numberType  = reflect.TypeFor[json.Number]()
	jsonMethods = reflect.TypeFor[json.Marshaler]()
	textMethods = reflect.TypeFor[encoding.TextMarshaler]()
)

// walker reads one scope and makes nodes of it. Its errors are about the place where its
// path stands when they come up.
type walker struct {
	tools   map[string]*catalog.Tool // what markers may name
	targets map[string]Target        // gets what markers lead to, by path

	path    []string // the global name, then keys and indices
	indices []bool   // which of those are indices; one shorter than path

	inside map[visit]bool // the pointers, maps and slices around the value at hand
	fields map[reflect.Type][]field

	values, bytes int
}

// visit tells a container from all others. A pointer to a struct and one to its first
// field are the same address, and so are an array and a slice of it.
type visit struct {
	typ     reflect.Type
	address uintptr
	length  int
}

// scope reads the value that a Scope function returned. The methods of what it finds
// there are the plugin's, and may panic.
func (w *walker) scope(v any) (n node, err error) {
	w.inside, w.fields = map[visit]bool{}, map[reflect.Type][]field{}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a method of this value panicked: %s", shorten(fmt.Sprint(p)))
		}
	}()
	n, err = w.value(reflect.ValueOf(v))
	switch {
	case err != nil:
		return node{}, err
	case n.kind == marker:
		return node{}, errors.New("a scope cannot be a tool itself; return an object with the tool in it")
	case n.kind != object:
		return node{}, errors.New("a scope must be an object, such as a map[string]any, and not null")
	}
	return n, nil
}

// value reads v, following pointers. Containers around it are in w.inside, w.path leads
// to it.
func (w *walker) value(v reflect.Value) (node, error) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if err := w.charge(1, 1); err != nil {
		return node{}, err
	}
	if !v.IsValid() {
		return null, nil
	}
	switch v.Type() {
	case markerType:
		return w.marker(v.Interface().(Marker))
	case rawType:
		return w.raw(v.Bytes())
	case numberType:
		return w.raw([]byte(cmp.Or(v.String(), "0")))
	}
	if m, ok := marshaler(v); ok {
		return w.marshal(m)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return w.reference(v)
	case reflect.Array:
		return w.array(v)
	case reflect.Struct:
		return w.structure(v)
	case reflect.String:
		return w.text(v.Len(), v.String())
	}
	return w.scalar(v)
}

// reference reads what can be nil, and what can contain itself.
func (w *walker) reference(v reflect.Value) (node, error) {
	switch {
	case v.IsNil():
		return null, nil
	case v.Kind() == reflect.Pointer:
		return w.enter(v, 0, func() (node, error) { return w.value(v.Elem()) })
	case v.Kind() == reflect.Map:
		return w.enter(v, 0, func() (node, error) { return w.mapping(v) })
	case isBytes(v.Type()):
		return w.text(v.Len()/3*4, v.Bytes())
	}
	return w.enter(v, v.Len(), func() (node, error) { return w.array(v) })
}

var null = node{scalar: []byte("null")}

// scalar reads what holds no other value.
func (w *walker) scalar(v reflect.Value) (node, error) {
	switch v.Kind() {
	case reflect.Bool:
		return node{scalar: strconv.AppendBool(nil, v.Bool())}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return node{scalar: strconv.AppendInt(nil, v.Int(), 10)}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return node{scalar: strconv.AppendUint(nil, v.Uint(), 10)}, nil
	case reflect.Float32:
		return float(float32(v.Float()), v.Float())
	case reflect.Float64:
		return float(v.Float(), v.Float())
	case reflect.Func:
		return node{}, errors.New("a function cannot cross to the guest; let it be a tool of the plugin, and put namespace.Tool(name) here")
	}
	return node{}, fmt.Errorf("a value of type %s cannot cross to the guest; leave it out, or turn it into plain data", shorten(v.Type().String()))
}

// float writes v, whose value is f, as encoding/json does: with the digits that its type has.
func float(v any, f float64) (node, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return null, nil
	}
	b, err := encode(v)
	return node{scalar: b}, err
}

// text writes a string, or bytes in base64, of about n bytes.
func (w *walker) text(n int, v any) (node, error) {
	if err := w.charge(0, n); err != nil {
		return node{}, err
	}
	b, err := encode(v)
	return node{scalar: b}, err
}

// implicit are the methods that JavaScript calls on objects without being told: no tool
// may be run by `await github` (SPEC 6.4 keeps them from convenience functions, too).
var implicit = []string{"then", "toJSON", "toString", "valueOf"}

// marker notes where a tool can be called.
func (w *walker) marker(m Marker) (node, error) {
	tool := w.tools[m.name]
	if tool == nil {
		return node{}, fmt.Errorf("tool %q is not in the RequiredTools of the namespace; add it there, or leave the marker out", shorten(m.name))
	}
	mapper, err := m.mapper()
	if err != nil {
		return node{}, err
	}
	if key := w.path[len(w.path)-1]; slices.Contains(implicit, key) {
		return node{}, fmt.Errorf("a tool at the key %q is refused: JavaScript would call it by itself, to await or to convert the object; rename it", key)
	}
	path := strings.Join(w.path, Separator)
	if len(path) > MaxPathBytes {
		return node{}, fmt.Errorf("the path to this tool has %d bytes, at most %d are possible; shorten the keys", len(path), MaxPathBytes)
	}
	w.targets[path] = Target{Tool: tool, Place: place(w.path, w.indices), mapper: mapper}
	return node{kind: marker, marked: true}, nil
}

// marshaler returns v, or a pointer to it, if that has methods to be encoded with. nil
// pointers have none: they are null.
func marshaler(v reflect.Value) (any, bool) {
	if v.Kind() == reflect.Pointer {
		if t := v.Type().Elem(); v.IsNil() || t == markerType || t == rawType {
			return nil, false
		}
	} else if v.CanAddr() {
		v = v.Addr() // whose methods are those of v and more
	}
	if t := v.Type(); !t.Implements(jsonMethods) && !t.Implements(textMethods) {
		return nil, false
	}
	return v.Interface(), true
}

// marshal reads what the methods of m make of it.
func (w *walker) marshal(m any) (node, error) {
	b, err := encode(m)
	if err != nil {
		return node{}, fmt.Errorf("it cannot be encoded: %w", err)
	}
	return w.raw(b)
}

// enter reads what is inside of a container, which must not be around it as well.
func (w *walker) enter(v reflect.Value, length int, read func() (node, error)) (node, error) {
	here := visit{v.Type(), v.Pointer(), length}
	if w.inside[here] {
		return node{}, errors.New("this value contains itself; a scope is data that ends")
	}
	w.inside[here] = true
	defer delete(w.inside, here)
	return read()
}

// nest says whether another container may be here. It is asked before memory is taken
// for its n elements.
func (w *walker) nest(n int) error {
	if len(w.path) > MaxDepth { // the root has a path of one
		return fmt.Errorf("objects and arrays nest deeper than %d levels; make the scope flatter", MaxDepth)
	}
	if n > MaxValues-w.values {
		return w.charge(n, 0)
	}
	return nil
}

// charge counts values, and bytes of their JSON, as far as they are known beforehand.
func (w *walker) charge(values, bytes int) error {
	w.values += values
	w.bytes += bytes
	if w.values > MaxValues {
		return fmt.Errorf("the scope holds more than %d values (one that stands in many places counts each time); leave data out, or offer a tool that returns it", MaxValues)
	}
	if w.bytes > MaxBytes {
		return fmt.Errorf("the scope has more than %d bytes of JSON; leave data out, or offer a tool that returns it", MaxBytes)
	}
	return nil
}

func (w *walker) array(v reflect.Value) (node, error) {
	n := node{kind: array}
	if err := w.nest(v.Len()); err != nil {
		return n, err
	}
	for i := range v.Len() {
		w.push(strconv.Itoa(i), true)
		child, err := w.value(v.Index(i))
		if err != nil {
			return n, err
		}
		n.add(child)
		w.pop()
	}
	return n, nil
}

// push and pop step into a child and back. After an error nobody steps back: the path
// says where it was.
func (w *walker) push(part string, index bool) {
	w.path, w.indices = append(w.path, part), append(w.indices, index)
}

func (w *walker) pop() {
	w.path, w.indices = w.path[:len(w.path)-1], w.indices[:len(w.indices)-1]
}

// member is a key of an object that is still to be read.
type member struct {
	key  string
	read func() (node, error)
}

// object reads members, by key.
func (w *walker) object(members []member) (node, error) {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	n := node{kind: object}
	for i, m := range members {
		w.push(m.key, false)
		if i > 0 && members[i-1].key == m.key {
			return n, errors.New("two keys of one object are the same text")
		}
		if err := w.key(m.key); err != nil {
			return n, err
		}
		child, err := m.read()
		if err != nil {
			return n, err
		}
		n.keys = append(n.keys, m.key)
		n.add(child)
		w.pop()
	}
	return n, nil
}

// key says whether a key may stand in a scope (SPEC 8.3). Guest code that copies a scope
// by assignment would change prototypes with three of them; with the separator, two
// places would have one path.
func (w *walker) key(key string) error {
	switch {
	case key == "__proto__" || key == "constructor" || key == "prototype":
		return fmt.Errorf("the key %q is refused: copying it in JavaScript can change a prototype; rename it", key)
	case key == "":
		return errors.New("an empty key is refused; name it")
	case strings.Contains(key, Separator):
		return errors.New("a key that holds U+001F is refused: it separates the parts of a path; rename it")
	case !utf8.ValidString(key):
		return errors.New("a key that is no valid Unicode is refused; rename it")
	}
	return w.charge(0, len(key))
}

func (w *walker) mapping(v reflect.Value) (node, error) {
	if err := w.nest(v.Len()); err != nil {
		return node{}, err
	}
	members := make([]member, 0, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		key, err := keyText(entries.Key())
		if err != nil {
			return node{}, err
		}
		value := entries.Value()
		members = append(members, member{key, func() (node, error) { return w.value(value) }})
	}
	return w.object(members)
}

// keyText returns the key of a map as encoding/json writes it.
func keyText(k reflect.Value) (string, error) {
	if k.Type() == reflect.PointerTo(markerType) {
		return "", errors.New("a tool marker cannot be a key; let it be the value")
	}
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if k.Type().Implements(textMethods) {
		if k.Kind() == reflect.Pointer && k.IsNil() {
			return "", nil
		}
		text, err := k.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return "", fmt.Errorf("a key of this map cannot be encoded: %w", err)
		}
		return string(text), nil
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", fmt.Errorf("a map with keys of type %s cannot cross to the guest; use strings", shorten(k.Type().String()))
}

// isBytes says whether encoding/json writes a slice of this type as base64.
func isBytes(t reflect.Type) bool {
	elem := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !elem.Implements(jsonMethods) && !elem.Implements(textMethods)
}

// raw reads JSON text. Nil and empty text is null.
func (w *walker) raw(text []byte) (node, error) {
	if len(text) == 0 {
		return null, nil
	}
	if err := w.charge(0, len(text)); err != nil {
		return node{}, err
	}
	// MaxDepth here is only to keep the parser from going deep; w.nest knows what is around.
	root, err := jsontree.Parse(text, jsontree.Limits{Depth: MaxDepth, Values: MaxValues, Work: MaxDepth * MaxValues})
	if err != nil {
		return node{}, fmt.Errorf("this JSON cannot be used: %w", err)
	}
	return w.tree(root)
}

// tree reads parsed JSON, whose bytes have been charged.
func (w *walker) tree(t *jsontree.Node) (node, error) {
	if err := w.charge(1, 0); err != nil {
		return node{}, err
	}
	switch t.Kind {
	case jsontree.Array:
		return w.items(t.Items)
	case jsontree.Object:
		return w.members(t.Members)
	case jsontree.Number:
		if f, err := strconv.ParseFloat(string(t.Raw), 64); err != nil || math.IsInf(f, 0) {
			return null, nil
		}
	}
	return node{scalar: t.Raw}, nil
}

func (w *walker) items(items []jsontree.Node) (node, error) {
	n := node{kind: array}
	if err := w.nest(len(items)); err != nil {
		return n, err
	}
	for i := range items {
		w.push(strconv.Itoa(i), true)
		child, err := w.tree(&items[i])
		if err != nil {
			return n, err
		}
		n.add(child)
		w.pop()
	}
	return n, nil
}

func (w *walker) members(list []jsontree.Member) (node, error) {
	if err := w.nest(len(list)); err != nil {
		return node{}, err
	}
	members := make([]member, len(list))
	for i := range list {
		m := &list[i]
		members[i] = member{m.Key, func() (node, error) {
			if loneSurrogate(m) {
				return node{}, errors.New("a key with half a surrogate pair is refused; rename it")
			}
			return w.tree(&m.Value)
		}}
	}
	return w.object(members)
}

// loneSurrogate says whether the key is no text that Go can hold: decoding put U+FFFD where
// half a pair was escaped. Other keys that have both are not worth telling apart.
func loneSurrogate(m *jsontree.Member) bool {
	return strings.ContainsRune(m.Key, utf8.RuneError) && strings.Contains(strings.ToLower(string(m.RawKey)), `\ud`)
}
