package surface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits"
)

// The names of the two tools (SPEC 1.1).
const (
	ExecName = "exec"
	WaitName = "wait"
)

// Definition is one tool as the model is shown it (SPEC 2.5).
type Definition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the JSON Schema of the input.
	Parameters json.RawMessage `json:"parameters"`
}

// Definitions are the two tools. They are values: equal views give equal bytes.
type Definitions struct {
	Exec Definition `json:"exec"`
	Wait Definition `json:"wait"`
}

// Define returns the definitions of a run.
//
// One schema serves all providers, in their strict modes and without: type object, flat,
// additionalProperties false, and every property required, as OpenAI's strict mode wants
// it. Hence language is required of the model and names a language; that is clearer to a
// model than a null that means javascript, and unions are what providers disagree about.
// [ParseExec] does without it. A config with one language has no property language.
// command is not in the schema: a model that sees two names for one thing fills both.
func Define(v View) Definitions {
	return Definitions{
		Exec: Definition{ExecName, Exec(v), execSchema(v.Limits.Languages)},
		Wait: Definition{WaitName, Wait(), encode(newSchema(property{"runId", "The runId of the result that had status \"waiting\".", nil}))},
	}
}

func execSchema(l limits.Languages) json.RawMessage {
	names := l.Names()
	properties := []property{{"code", "The program: " + strings.Join(titles(l), " or ") + " source.", nil}}
	if len(names) > 1 {
		properties = append(properties, property{"language", "What code is written in.", names})
	}
	return encode(newSchema(properties...))
}

// titles are the names of the languages as people write them.
func titles(l limits.Languages) []string {
	names := l.Names()
	for i, name := range names {
		names[i] = map[string]string{"javascript": "JavaScript", "typescript": "TypeScript"}[name]
	}
	return names
}

// property is a text property of a schema.
type property struct {
	name, description string
	enum              []string
}

// schema writes its fields in this order, always.
type schema struct {
	Type                 string     `json:"type"`
	Properties           properties `json:"properties"`
	Required             []string   `json:"required"`
	AdditionalProperties bool       `json:"additionalProperties"`
}

func newSchema(all ...property) schema {
	s := schema{Type: "object", Properties: all}
	for _, p := range all {
		s.Required = append(s.Required, p.name)
	}
	return s
}

type properties []property

// MarshalJSON keeps the order of the properties, which models read: code comes first.
func (all properties) MarshalJSON() ([]byte, error) {
	var members [][]byte
	for _, p := range all {
		members = append(members, slices.Concat(encode(p.name), []byte(":"), encode(struct {
			Type        string   `json:"type"`
			Enum        []string `json:"enum,omitempty"`
			Description string   `json:"description"`
		}{"string", p.enum, p.description})))
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), nil
}

// Shape is how a provider's API writes tools.
type Shape string

// The shapes. [Detect] is for [CheckPayload] alone.
const (
	Detect          Shape = ""
	OpenAIChat      Shape = "openai-chat"
	OpenAIResponses Shape = "openai-responses"
	Anthropic       Shape = "anthropic-messages"
	Gemini          Shape = "gemini"
)

// Shapes lists the shapes of providers.
func Shapes() []Shape { return []Shape{OpenAIChat, OpenAIResponses, Anthropic, Gemini} }

// Render returns the value of a payload's field "tools": a JSON array with exec and wait, in
// this order. strict asks the provider to hold the model to the schema while it writes:
// "strict": true with OpenAI and Anthropic; models and compatible servers that do not know
// the field may refuse it. Gemini has no such field (the mode VALIDATED of toolConfig does
// it) and gets the schema as parametersJsonSchema: the older "parameters" knows no
// additionalProperties. It panics for a shape that is not one of [Shapes].
func (d Definitions) Render(s Shape, strict bool) json.RawMessage {
	if s == Gemini {
		type group struct {
			Declarations []geminiTool `json:"functionDeclarations"`
		}
		return encode([]group{{[]geminiTool{geminiTool(d.Exec), geminiTool(d.Wait)}}})
	}
	var tools []any
	for _, t := range []Definition{d.Exec, d.Wait} {
		switch s {
		case OpenAIChat:
			tools = append(tools, chatTool{"function", chatFunction{t.Name, t.Description, strict, t.Parameters}})
		case OpenAIResponses:
			tools = append(tools, responsesTool{"function", t.Name, t.Description, strict, t.Parameters})
		case Anthropic:
			tools = append(tools, anthropicTool{t.Name, t.Description, strict, t.Parameters})
		default:
			panic(fmt.Sprintf("surface: no shape %q", s))
		}
	}
	return encode(tools)
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Strict      bool            `json:"strict,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Strict      bool            `json:"strict"` // said either way: left out, it means true here
	Parameters  json.RawMessage `json:"parameters"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Strict      bool            `json:"strict,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type geminiTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parametersJsonSchema"`
}

// encode is json.Marshal without its HTML escapes: < and > cost six bytes each in every
// prompt. Its arguments always encode.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("surface: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
