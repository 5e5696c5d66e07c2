package namespace

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a member that encoding/json gives a struct.
type field struct {
	name  string
	index []int // as in [reflect.Value.FieldByIndex]

	tagged    bool // the name comes from a tag
	omitEmpty bool
	omitZero  bool
	quoted    bool // written as a string that holds the JSON of the value
}

// structure reads a struct as encoding/json would write it.
func (w *walker) structure(v reflect.Value) (node, error) {
	fields, known := w.fields[v.Type()]
	if !known {
		fields = fieldsOf(v.Type())
		w.fields[v.Type()] = fields
	}
	if err := w.nest(0); err != nil {
		return node{}, err
	}
	var members []member
	for _, f := range fields {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitEmpty && isEmpty(value) || f.omitZero && isZero(value) {
			continue // err: behind an embedded pointer that is nil
		}
		members = append(members, member{f.name, func() (node, error) { return w.field(f, value) }})
	}
	return w.object(members)
}

func (w *walker) field(f field, v reflect.Value) (node, error) {
	n, err := w.value(v)
	if err != nil || !f.quoted || string(n.scalar) == "null" {
		return n, err
	}
	if _, ok := marshaler(v); ok {
		return n, nil // its methods decide
	}
	return w.text(len(n.scalar), string(n.scalar))
}

// embedded is a struct that lends its fields to the one that it is embedded in.
type embedded struct {
	typ   reflect.Type
	index []int
	twice bool // at this depth, so that its fields are in each other's way
}

// fieldsOf finds the fields of a struct type by the rules of encoding/json: embedded
// structs lend theirs unless they have a name in a tag; of several fields with one name
// the least deep one counts, there the tagged one, and if that leaves two, none.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	settled := map[string]bool{}
	seen := map[reflect.Type]bool{}
	for level := []embedded{{typ: t}}; len(level) > 0; {
		found, next := fieldsAt(level, seen)
		for name, list := range found {
			if f, ok := dominant(list); ok && !settled[name] {
				fields = append(fields, f)
			}
			settled[name] = true
		}
		level = next
	}
	return fields
}

// fieldsAt returns the fields of the structs at one depth, by name, and the structs that
// lend theirs at the next. Those that were seen less deep have nothing to add.
func fieldsAt(level []embedded, seen map[reflect.Type]bool) (found map[string][]field, next []embedded) {
	found = map[string][]field{}
	at := map[reflect.Type]int{} // in next
	for _, e := range level {
		if seen[e.typ] {
			continue
		}
		seen[e.typ] = true
		for i := range e.typ.NumField() {
			f, lender := fieldOf(e.typ.Field(i))
			f.index = append(slices.Clone(e.index), i)
			j, again := at[lender]
			switch {
			case lender != nil && again:
				next[j].twice = true
			case lender != nil:
				at[lender] = len(next)
				next = append(next, embedded{lender, f.index, e.twice})
			case f.name != "":
				found[f.name] = append(found[f.name], f)
				if e.twice {
					found[f.name] = append(found[f.name], f)
				}
			}
		}
	}
	return found, next
}

// fieldOf returns the member that a struct field is, or the type of the struct whose
// fields it lends; neither if encoding/json passes over it.
func fieldOf(sf reflect.StructField) (field, reflect.Type) {
	elem := sf.Type
	if elem.Kind() == reflect.Pointer && elem.Name() == "" {
		elem = elem.Elem()
	}
	lends := sf.Anonymous && elem.Kind() == reflect.Struct
	tag := sf.Tag.Get("json")
	if tag == "-" || !sf.IsExported() && !lends {
		return field{}, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	if name == "" && lends {
		return field{}, elem
	}
	f := field{name: name, tagged: name != ""}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "string":
			k := elem.Kind()
			f.quoted = k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
		}
	}
	return f, nil
}

// dominant returns the field that counts of those with one name at one depth.
func dominant(list []field) (field, bool) {
	var tagged []field
	for _, f := range list {
		if f.tagged {
			tagged = append(tagged, f)
		}
	}
	if len(tagged) > 0 {
		list = tagged
	}
	return list[0], len(list) == 1
}

// validName says whether encoding/json takes the name that a tag gives.
func validName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return name != ""
}

// isEmpty is what omitempty asks.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct, reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return false
	}
	return v.IsZero()
}

// isZero is what omitzero asks: the value's IsZero method, if its type has one.
func isZero(v reflect.Value) bool {
	type zeroer interface{ IsZero() bool }
	t := v.Type()
	if nilable := v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface; nilable && v.IsNil() {
		return true
	}
	if t.Implements(reflect.TypeFor[zeroer]()) {
		if v.Kind() == reflect.Interface && v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
			return true
		}
		return v.Interface().(zeroer).IsZero()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[zeroer]()) {
		if !v.CanAddr() {
			boxed := reflect.New(t).Elem()
			boxed.Set(v)
			v = boxed
		}
		return v.Addr().Interface().(zeroer).IsZero()
	}
	return v.IsZero()
}
