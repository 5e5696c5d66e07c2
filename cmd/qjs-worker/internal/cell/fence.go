package cell

import "strings"

// fence is one Markdown code fence around a whole source.
type fence struct {
	tag  string // the first word of the info string, in lower case
	body string // what is between the fence lines, its last line break left out
	at   int    // where body begins in the source, in bytes
}

// languages are the tags that a fence may have, and the language each stands for.
var languages = map[string]Language{
	"": "", "js": JavaScript, "javascript": JavaScript, "jsx": JavaScript, "mjs": JavaScript, "cjs": JavaScript,
	"ts": TypeScript, "typescript": TypeScript, "tsx": TypeScript, "mts": TypeScript, "cts": TypeScript,
}

// blank is white space around a source, with the byte order mark.
const blank = " \t\r\n\ufeff"

// findFence takes a source apart that is exactly one fence as CommonMark has it (three
// or more ` or ~, the end at least as long as the start), with nothing but white space
// around it. Anything else (text before or after, two fences, no end) is no fence of
// ours: the source is left as it is, and the parser judges it (SPEC 4.1).
func findFence(source string) (fence, bool) {
	rest := strings.TrimLeft(source, blank)
	if len(rest) < 3 || rest[0] != '`' && rest[0] != '~' {
		return fence{}, false
	}
	mark := rest[:1]
	n := len(rest) - len(strings.TrimLeft(rest, mark))
	if n < 3 {
		return fence{}, false
	}
	info, inside, ok := cutLine(rest)
	if info = info[n:]; !ok || strings.Contains(info, "`") {
		return fence{}, false // one line, or an inline code span
	}
	f := fence{at: len(source) - len(inside)}
	if words := strings.Fields(info); len(words) > 0 {
		f.tag = strings.ToLower(words[0])
	}
	for line, left := "", inside; ; {
		at := len(inside) - len(left)
		if line, left, ok = cutLine(left); closes(line, mark, n) {
			f.body = trimBreak(inside[:at])
			return f, strings.Trim(left, blank) == ""
		}
		if !ok {
			return fence{}, false
		}
	}
}

// closes tells whether a line ends a fence that was opened with n marks.
func closes(line, mark string, n int) bool {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	line = strings.TrimRight(line[indent:], " \t")
	return indent <= 3 && len(line) >= n && strings.Trim(line, mark) == ""
}

// cutLine cuts s behind its first line break; ok is false if it has none.
func cutLine(s string) (line, rest string, ok bool) {
	i := strings.IndexAny(s, "\r\n")
	if i < 0 {
		return s, "", false
	}
	n := 1
	if strings.HasPrefix(s[i:], "\r\n") {
		n = 2
	}
	return s[:i], s[i+n:], true
}

func trimBreak(s string) string {
	if t, ok := strings.CutSuffix(s, "\r\n"); ok {
		return t
	}
	if t, ok := strings.CutSuffix(s, "\n"); ok {
		return t
	}
	return strings.TrimSuffix(s, "\r")
}
