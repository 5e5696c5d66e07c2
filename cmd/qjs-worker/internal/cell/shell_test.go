package cell

import (
	"context"
	"strings"
	"testing"
)

// SPEC 3.4: what is plainly a shell command, and not JavaScript.
func TestShell(t *testing.T) {
	for _, source := range []string{
		// Accepted by the parser: words and operators, which could only fail.
		"ls", "pwd", "date", "ls -la", "ls -la /tmp", "rm -rf /tmp/x", "ls | wc -l", "ls; pwd", "ls\npwd\n", "cat /etc/hosts.conf", " ls -la\n",
		// Rejected by it.
		"git status && echo ok", "git log --oneline", "cat file.txt | grep foo", "cd /tmp && ls", "echo $HOME", "echo hello world",
		"npm install", "sudo rm -rf /", "rm -rf /", "$ ls --color", "find . -name '*.js'", "python3 -c 'print(1)'", "sh -c 'pwd now'",
		"/usr/bin/env node x.js", "/bin/ls -la", "./run.sh --all", "~/bin/x y", "curl -s https://example.com | jq .", "mkdir -p a/b",
		"FOO=bar make all", "export PATH=/x:$PATH", "grep -r \"return \" src", "git commit -m \"import new things\"",
		"foo --bar | baz --qux", "terraform plan > out.txt", "#!/bin/bash\nset -e\nls -la x", "#!/usr/bin/env bash\necho hi there",
		"ls -la # all\nfor f in *; do echo $f; done", "```bash\nls -la\n```", "```sh\ngit status\n```",
	} {
		for _, language := range []Language{JavaScript, TypeScript} {
			_, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source, Language: language})
			if fault == nil || fault.Code != CodeInvalidInput || !fault.Shell || !strings.Contains(fault.Message, "shell command") {
				t.Errorf("%s: Prepare(%q) = %v, want a shell command", language, source, fault)
			}
		}
	}
	for _, source := range []string{
		"a || b", "return 1 || 2", "1 || 2", "a | b", "x - y / z", "ls()", "ls.length", "const ls = 1; ls -la", "var ls, la; ls -la", "ls = 1",
		"let date = new Date(); date", "id => id", "find: for (;;) break find", "typeof ls", "echo`a`", "await ls", "sort(a)", "`ls -la`", "'ls -la'",
		"ls - f()", "git ? 1 : 2", "// ls -la\n1",
	} {
		if prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source}); fault != nil {
			t.Errorf("Prepare(%q) = %v", source, fault)
		} else if prog == nil {
			t.Errorf("Prepare(%q): no program", source)
		}
	}
	// Rejected, but no shell command: the syntax error is the better answer.
	for _, source := range []string{
		"const x = ;", "await tools.call('x'", "let a = b ||", "if (x) { return 1", "x > (3", "a && (b", "f(1, 2", "foo bar", "this is a sentence",
		"Please run ls for me", "{a: 1, b: }", "function f( { return 1 }", "find = (x => ", "const r = await tools.call('shell', {command: 'ls | wc'}",
		"text(`ls -la && pwd`", "date = new Date(", "import x from", "let = > 3",
	} {
		for _, language := range []Language{JavaScript, TypeScript} {
			_, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source, Language: language})
			if fault == nil || fault.Shell {
				t.Errorf("%s: Prepare(%q) = %v, want a syntax error", language, source, fault)
			}
		}
	}
	// A global of the run's that has a command's name.
	if _, fault := newTestParser(t).Prepare(context.Background(), Input{Source: "git", Globals: []string{"git"}}); fault != nil {
		t.Errorf("git with a global git: %v", fault)
	}
}
