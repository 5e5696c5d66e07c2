// Package namespace lets plugins of the gateway give cells an object of their own:
// `github.issues.create({…})` in place of `tools.create_issue({…})` (SPEC 8).
//
//	var r namespace.Registry
//	err := r.Register("github", namespace.Namespace{
//		ID: "github", GlobalName: "github", Description: "Issues of this repository.",
//		RequiredTools: []string{"create_issue"},
//		Scope: func(ctx context.Context, run namespace.Run) (any, error) {
//			return map[string]any{"issues": map[string]any{"create": namespace.Tool("create_issue")}}, nil
//		},
//	})
//	scopes, err := r.Build(ctx, c, run)     // once for each run, before guest code
//	target, err := scopes.Resolve(path)     // once for each call of the guest
//	input, err := target.Input(arguments)
//
// A plugin registers once, a run builds once. What Build returns never changes and
// holds on to nothing of the registry, so a plugin may be cleared while a run goes on.
// A path that the guest names is looked up in what Build itself wrote down, and the
// tool behind it was chosen then, by its owner: there is nothing to forge (SPEC 8.5).
//
// # What a scope may hold
//
// A scope is plain data with markers ([Tool]) in it: what encoding/json can encode, by
// its rules, with an object at the root. These differ:
//
//   - Keys are sorted, those of structs and of raw JSON too: equal scopes give equal bytes.
//   - The keys `__proto__`, `constructor`, `prototype`, the empty one, and those that hold
//     U+001F or are no valid Unicode are errors, wherever they stand. So is a key that
//     raw JSON has twice.
//   - No tool stands at the keys `then`, `toJSON`, `toString` and `valueOf`, whose functions
//     JavaScript calls by itself.
//   - NaN and infinities are null, and so is a number such as 1e400, which JavaScript
//     would read as Infinity. Numbers keep their digits up to the guest, where they
//     become JavaScript numbers: past 2^53 send a string.
//   - Cycles are errors, as in encoding/json; a value may stand in many places. It counts
//     each time towards the bounds, which are [MaxValues], [MaxDepth] and [MaxBytes].
//
// # What it does not protect against
//
// Plugins are trusted code in this process (SPEC 8.1): their functions run on the
// caller's goroutine and are not timed. Panics are caught, results are bounded. Whether
// a call is allowed is decided where every catalog tool call is, not here (SPEC 8.4).
package namespace
