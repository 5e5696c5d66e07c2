// Package limits holds what one run may use and how the operator set it up: the
// config fields of tools.codeMode and supervisor (SPEC 13).
//
//	cfg, warnings, err := limits.Parse(file)            // {tools: {codeMode: {…}}, supervisor: {…}}
//	w, err := cfg.Set("timeoutMs", "5000")              // --set timeoutMs=5000
//	agent, w, err := cfg.Override([]byte(`{timeoutMs: 5000}`)) // an agent's own value
//	cfg.Limits.Timeout                                  // always inside its range
//
// One table of fields (field.go) drives parsing, clamping, [Schema], [Fields] and
// [Config.Marshal], so that they cannot disagree. A whole number outside its
// range is clamped and said in a [Warning]; everything else that does not fit is
// a *[ConfigError], which callers report as invalid_config.
//
// Everything here is plain data and pure functions: no files are read, nothing is
// enforced. A [Config] that Parse, Set or Override returned holds only values
// inside their ranges; one that was put together by hand is the caller's word.
package limits
