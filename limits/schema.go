package limits

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Schema returns the JSON Schema (2020-12) of a config file, indented. It is made
// from the table that [Parse] uses. Parse is more lenient in one point: it clamps
// whole numbers outside their range, which the schema does not allow.
func Schema() []byte {
	root := node{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "codemode-supervisor config",
	}
	root.open()
	for i := range table {
		f := &table[i]
		root.at(parent(f.Path)).properties()[name(f.Path)] = f.schema()
	}
	// tools.codeMode may be a boolean instead of an object (SPEC 2.1).
	tools := root.at("tools").properties()
	tools["codeMode"] = node{"anyOf": []any{node{"type": "boolean"}, tools["codeMode"]}}
	return encode(root, "  ")
}

func (f *field) schema() node {
	n := node{"type": f.Type, "description": f.Doc}
	if f.DefaultDoc == "" {
		n["default"] = f.Default
	} else {
		n["description"] = f.Doc + " Default: " + f.DefaultDoc + "."
	}
	switch f.Type {
	case "integer":
		n["minimum"], n["maximum"] = f.Min, f.Max
	case "array":
		items := node{"type": "string"}
		if len(f.Enum) > 0 {
			items["enum"] = f.Enum
			n["minItems"] = 1
		}
		n["items"] = items
	case "string":
		if len(f.Enum) > 0 {
			n["enum"] = f.Enum
		}
	}
	return n
}

// Marshal returns c as the JSON of a config file that sets every field, indented,
// in the order of [Fields]. [Parse] of it gives c again.
func (c Config) Marshal() []byte {
	var b bytes.Buffer
	var open []string // the objects that b is inside of
	b.WriteString("{")
	for i := range table {
		f := &table[i]
		want := strings.Split(parent(f.Path), ".")
		shared := 0
		for shared < len(open) && shared < len(want) && open[shared] == want[shared] {
			shared++
		}
		b.WriteString(strings.Repeat("}", len(open)-shared))
		if i > 0 {
			b.WriteString(",")
		}
		for _, object := range want[shared:] {
			b.WriteString(`"` + object + `":{`)
		}
		open = want
		b.WriteString(`"` + name(f.Path) + `":`)
		b.Write(encode(f.get(&c), ""))
	}
	b.WriteString(strings.Repeat("}", len(open)+1))
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		panic("limits: the table does not nest: " + err.Error()) // a fault of ours, and every test sees it
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// node is a JSON Schema object.
type node map[string]any

// open makes n the schema of an object that takes no other members.
func (n node) open() {
	n["type"], n["additionalProperties"], n["properties"] = "object", false, node{}
}

func (n node) properties() node { return n["properties"].(node) }

// at returns the schema of the object at path, which is made if need be.
func (n node) at(path string) node {
	for _, key := range strings.Split(path, ".") {
		child, ok := n.properties()[key].(node)
		if !ok {
			child = node{}
			child.open()
			n.properties()[key] = child
		}
		n = child
	}
	return n
}

func parent(path string) string { return path[:strings.LastIndexByte(path, '.')] }
func name(path string) string   { return path[strings.LastIndexByte(path, '.')+1:] }

// encode is json.Marshal without its HTML escapes, for values that always encode.
func encode(v any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic("limits: " + err.Error())
	}
	if indent == "" {
		return bytes.TrimSpace(b.Bytes())
	}
	return b.Bytes()
}
