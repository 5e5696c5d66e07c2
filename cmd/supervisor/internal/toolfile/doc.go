// Package toolfile reads --tools files and runs the tools in them (SPEC 20): real
// catalog entries with canned, scripted or real behaviour.
//
//	tools, err := toolfile.Load("tools.json5")
//	entries = append(entries, tools[0].Entry)
//	value, err := tools[0].Run(ctx, input, call.Park)
//
// A file is JSON5:
//
//	{tools: [
//	  {name: "echo", echo: true},
//	  {name: "flaky", sequence: [{error: "try again"}, {result: {ok: true}, delayMs: 50}]},
//	  {name: "word_count", command: ["wc", "-w"], policy: "approve"},
//	]}
//
// Every mistake in a file is an *[Error] that names file, line, tool and field:
// nothing is guessed and nothing is skipped. The programs behind `command` are the
// operator's own: they run with the environment, the directory and the rights of
// the supervisor. Each gets a process group of its own, which is killed when the
// program ends or the call is given up; a program that leaves its group on purpose
// (setsid) is not followed.
package toolfile
