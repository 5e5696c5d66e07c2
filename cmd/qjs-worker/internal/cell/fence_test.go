package cell

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"
)

// SPEC 4.1: one fence around everything; its tag sets the language if none was given.
func TestFence(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		given        Language
		language     Language
		value        string
	}{
		{"no tag", "```\nreturn 1\n```", "", JavaScript, "1"},
		{"js", "```js\nreturn 1\n```", "", JavaScript, "1"},
		{"javascript", "```javascript\nreturn 1\n```", "", JavaScript, "1"},
		{"JavaScript", "```JavaScript\nreturn 1\n```", "", JavaScript, "1"},
		{"jsx", "```jsx\nreturn 1\n```", "", JavaScript, "1"},
		{"ts", "```ts\nreturn 1 as number\n```", "", TypeScript, "1"},
		{"typescript", "```typescript\nreturn 1 as number\n```", "", TypeScript, "1"},
		{"more words", "```ts title=\"a.ts\"\nreturn 1 as number\n```", "", TypeScript, "1"},
		{"space before the tag", "``` ts \nreturn 1 as number\n``` ", "", TypeScript, "1"},
		{"language given, tag js", "```js\nreturn 1 as number\n```", TypeScript, TypeScript, "1"},
		{"language given, tag ts", "```ts\nreturn 1\n```", JavaScript, JavaScript, "1"},
		{"tildes", "~~~js\nreturn 1\n~~~", "", JavaScript, "1"},
		{"longer", "````js\n/*\n```\n*/ return 3\n````", "", JavaScript, "3"},
		{"longer end", "```js\nreturn 1\n`````", "", JavaScript, "1"},
		{"tildes around backticks", "~~~\n/*\n```\n*/ return 3\n~~~", "", JavaScript, "3"},
		{"white space around", " \n\n```js\nreturn 1\n```\n\n ", "", JavaScript, "1"},
		{"byte order mark", "\ufeff```js\nreturn 1\n```", "", JavaScript, "1"},
		{"CRLF", "```js\r\nreturn 1\r\n```\r\n", "", JavaScript, "1"},
		{"CR", "```js\rreturn 1\r```", "", JavaScript, "1"},
		{"empty", "```js\n```", "", JavaScript, "null"},
		{"blank", "```js\n\n```", "", JavaScript, "null"},
		{"function inside", "```js\nasync () => 1\n```", "", JavaScript, "1"},
		{"expression inside", "```\n{a: 1}\n```", "", JavaScript, `{"a":1}`},
		{"indented end", "```js\nreturn 1\n   ```", "", JavaScript, "1"},
		{"comment at the end", "```js\nreturn 1 // x\n```", "", JavaScript, "1"},
		{"backticks inside a line", "```js\nreturn '```'.length\n```", "", JavaScript, "3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: tt.source, Language: tt.given})
			if fault != nil {
				t.Fatal(fault)
			}
			if !prog.Fenced || prog.Language != tt.language {
				t.Errorf("fenced %v, language %s; want %s", prog.Fenced, prog.Language, tt.language)
			}
			if out := runProgram(t, prog); out.Value != tt.value {
				t.Errorf("value %s, error %s; want %s", out.Value, out.Error, tt.value)
			}
		})
	}
}

// What is not one fence around everything is left as it is.
func TestNoFence(t *testing.T) {
	for _, source := range []string{
		"",
		"return 1",
		"```js\nreturn 1",
		"return 1\n```",
		"```",
		"```js",
		"```js return 1```",
		"```js\nreturn 1\n```\nreturn 2",
		"Here:\n```js\nreturn 1\n```",
		"```js\nreturn 1\n```\n```js\nreturn 2\n```",
		"``\nreturn 1\n``",
		"````js\nreturn 1\n```",
		"~~~js\nreturn 1\n```",
		"```js\nreturn 1\n    ```",
		"```js\nreturn 1 ```",
	} {
		if f, ok := findFence(source); ok {
			t.Errorf("findFence(%q) = %+v", source, f)
		}
	}
}

func FuzzFence(f *testing.F) {
	for _, s := range []string{"```js\nreturn 1\n```", "~~~\n\n~~~ ", "\ufeff \n````ts x\r\na\r\n````\n", "```\n```", "``` `\n```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got, ok := findFence(source)
		if !ok || !utf8.ValidString(source) {
			return // Prepare refuses what is not UTF-8 before
		}
		if !strings.HasPrefix(source[got.at:], got.body) || strings.ContainsAny(got.tag, " \r\n") {
			t.Errorf("findFence(%q) = %+v: the body is not there", source, got)
		}
		around := source[:got.at] + source[got.at+len(got.body):]
		if n := strings.Count(around, "```") + strings.Count(around, "~~~"); n < 2 {
			t.Errorf("findFence(%q) = %+v: what is around it is %q", source, got, around)
		}
	})
}
