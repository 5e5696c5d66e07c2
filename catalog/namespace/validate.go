package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/words"
)

const (
	// MaxNamespaces is how many namespaces a registry holds.
	MaxNamespaces = 64

	maxIDBytes         = catalog.MaxIDBytes // also of plugin ids and of the names of tools
	maxGlobalNameBytes = 128                // it begins every path
	maxTextRunes       = 2000               // the model reads it in every turn
	maxRequiredTools   = 256
)

// privatePrefixes begin the names that the worker adds to cells
// (cmd/qjs-worker/internal/cell), and those that the gateway keeps for itself.
var privatePrefixes = []string{"__codemode", "__openclaw"}

// taken are the globals of the guest, those of ECMAScript and of other hosts that it
// lacks on purpose (SPEC 4.6: code asks for them to find out where it runs), and what
// every object inherits. A test compares them with the guest's.
var taken = set(`
	ALL_TOOLS API MCP console json namespaces text tools yield_control

	AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array Boolean DataView
	Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity
	Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy RangeError
	ReferenceError Reflect RegExp Set ShadowRealm SharedArrayBuffer String SuppressedError Symbol SyntaxError Temporal
	TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet decodeURI
	decodeURIComponent encodeURI encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt undefined
	unescape

	DOMException TextDecoder TextEncoder URL URLSearchParams atob btoa clearInterval clearTimeout crypto performance
	queueMicrotask setInterval setTimeout structuredClone

	Buffer Bun Deno WebAssembly clearImmediate exports fetch global module navigator process require self setImmediate
	window

	__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ __proto__ constructor hasOwnProperty
	isPrototypeOf propertyIsEnumerable prototype then toJSON toLocaleString toString valueOf`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// normalize brings a registration into the form that the registry keeps, in memory of
// its own, or says why it cannot be kept.
func (a *registration) normalize() error {
	a.ID = strings.TrimSpace(a.ID)
	a.GlobalName = strings.TrimSpace(a.GlobalName)
	a.Description = strings.TrimSpace(a.Description)
	a.Prompt = strings.TrimSpace(a.Prompt)
	var err error
	if a.RequiredTools, err = toolNames(a.RequiredTools); err != nil {
		return err
	}
	if a.Scope == nil {
		err = errors.New("it has no Scope function, which builds the scope of a run")
	}
	return cmp.Or(
		// An id is compared, never repaired: " github" must not come to own github's tools.
		checkID("plugin id", a.pluginID),
		checkID("id", a.ID),
		checkGlobalName(a.GlobalName),
		checkText("description", a.Description),
		checkText("prompt", a.Prompt),
		err,
	)
}

// checkID refuses U+FFFD because the catalog writes it where a SourceName was no UTF-8,
// so that it stands for more than one name.
func checkID(what, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("its %s is empty", what)
	case strings.TrimSpace(id) != id:
		return fmt.Errorf("its %s %q has space around it; write it as the catalog does", what, shorten(id))
	case len(id) > maxIDBytes:
		return fmt.Errorf("its %s has %d bytes, at most %d are possible", what, len(id), maxIDBytes)
	case strings.ContainsRune(id, utf8.RuneError): // U+FFFD or no UTF-8
		return fmt.Errorf("its %s %q is no valid text", what, shorten(id))
	}
	return nil
}

func checkGlobalName(name string) error {
	switch {
	case name == "":
		return errors.New("its global name is empty; it is what cells call the namespace, such as github")
	case len(name) > maxGlobalNameBytes:
		return fmt.Errorf("its global name has %d bytes, at most %d are possible", len(name), maxGlobalNameBytes)
	case catalog.ConvenienceName(name) != name:
		return fmt.Errorf("its global name %q is no JavaScript identifier; %q would be one", name, catalog.ConvenienceName(name))
	case words.Reserved[name]:
		return fmt.Errorf("its global name %q is a reserved word of JavaScript; choose another", name)
	case taken[name]:
		return fmt.Errorf("its global name %q would hide a built-in; choose another", name)
	case slices.ContainsFunc(privatePrefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
		return fmt.Errorf("its global name %q begins with %s, which are kept for code mode itself; choose another", name, strings.Join(privatePrefixes, " or "))
	}
	return nil
}

// checkText refuses what is too long instead of cutting it: the plugin's author is there
// to shorten it, and half a sentence may tell the model the opposite.
func checkText(what, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("its %s is not UTF-8", what)
	}
	if n := utf8.RuneCountInString(text); n > maxTextRunes {
		return fmt.Errorf("its %s has %d characters, at most %d are possible; shorten it", what, n, maxTextRunes)
	}
	return nil
}

// toolNames returns the names trimmed, sorted and each once.
func toolNames(names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, errors.New("it requires no tools; name at least one of the plugin's own in RequiredTools")
	}
	if len(names) > maxRequiredTools {
		return nil, fmt.Errorf("it requires %d tools, at most %d are possible", len(names), maxRequiredTools)
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strings.TrimSpace(name)
		if err := checkID(fmt.Sprintf("required tool %d", i), list[i]); err != nil {
			return nil, err
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// shorten bounds what a plugin or a guest wrote for the text of an error.
func shorten(s string) string {
	const limit = 300
	s = strings.ToValidUTF8(s[:min(len(s), 2*limit)], "\ufffd")
	if len(s) <= limit {
		return s
	}
	cut := limit
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
