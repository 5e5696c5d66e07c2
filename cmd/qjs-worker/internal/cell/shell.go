package cell

import (
	"slices"
	"strings"
)

// shellCommands are words that begin a shell command and hardly ever a JavaScript one.
var shellCommands = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`
		apt apt-get awk bash brew bun cargo cat cd chmod chown clear cp curl cut date df diff dig docker du echo env
		file find free gcc git go grep gunzip gzip head helm history hostname id ifconfig ip jq kill kubectl
		ln ls lsof make man mkdir mv nc netstat node npm npx open ping pip pip3 pkill pnpm ps pwd pytest python
		python3 rg rm rmdir rsync scp sed sh sort source ssh stat sudo systemctl tail tar tee time top touch tr tree
		uname uniq unzip uptime wc wget which whoami xargs yarn zip zsh`) {
		m[w] = true
	}
	return m
}()

var (
	firstWord   = pattern(`^(?:[$%#>] +)?((?:[A-Za-z_][A-Za-z0-9_]*=\S* +)*)([A-Za-z][A-Za-z0-9_-]*)(?:$|[\s;|&>])`)
	assignment  = pattern(`^(?:[$%#>] +)?export +[A-Za-z_][A-Za-z0-9_]*=`)
	programPath = pattern(`^(?:[$%#>] +)?(?:\.{1,2}|~|/(?:usr/(?:local/)?)?s?bin)/[\w./-]+(?:$|[\s;|&>])`)
	shellJoint  = pattern(`^[a-z][\w.-]* +[\w./~"'$-][^(){}\[\]=]*(?:&&|\||>)[^(){}\[\]=]*$`)
	shebang     = pattern(`^#!.*\b(?:ba|da|z)?sh\b`)
	quotedText  = pattern(`'[^'\n]*'|"[^"\n]*"`)
	scriptText  = pattern(`\b(?:await|return|typeof|new|throw)\s|\b(?:const|let|var|function|class|import)\s+[\w$*{\[]|\b(?:tools|MCP|API|namespaces|console|JSON|Object|Math)\.|\bALL_TOOLS\b|\b(?:text|json)\(|=>|\)\s*\{`)
)

// command is the shell command's name that the source begins with, "" if it begins
// with none or the guest has a global of that name.
func (s *source) command() string {
	line, _, _ := cutLine(strings.TrimSpace(s.body))
	m := firstWord().FindStringSubmatch(line)
	if m == nil || !shellCommands[m[2]] || slices.Contains(s.in.Globals, m[2]) {
		return ""
	}
	return m[2]
}

// shell tells whether a source that the parser rejected is plainly a shell command
// (SPEC 3.4): it has nothing of a script outside of quotes, and it begins with a
// command or a program's path, or is one line of words joined as a shell joins them.
func (s *source) shell() bool {
	text := strings.TrimSpace(s.body)
	if scriptText().MatchString(quotedText().ReplaceAllString(text, "''")) {
		return false
	}
	if shebang().MatchString(text) {
		return true
	}
	line, _, more := cutLine(text)
	if m := firstWord().FindStringSubmatch(line); m != nil && (shellCommands[m[2]] || m[1] != "") || programPath().MatchString(line) || assignment().MatchString(line) {
		return true
	}
	return !more && len(line) <= 240 && shellJoint().MatchString(line)
}

// shellError refuses a shell command. because is the parser's own error, if it had one.
func shellError(because *Error) *Error {
	e := &Error{
		Code: CodeInvalidInput, Shell: true,
		Message: "this looks like a shell command, but a cell must be JavaScript or TypeScript; nothing was run",
	}
	if because != nil {
		e.Line, e.Column = because.Line, because.Column
		e.Message += "\n" + because.Message
	}
	return e
}
