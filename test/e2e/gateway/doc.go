// Package gateway is a gateway to test with: small, and as real as a product's. It talks to
// model providers over HTTP, has agents, sessions, tools of all kinds, policy, hooks and
// approvals, and embeds the supervisor as any product would. Read it to see how.
//
//	g, err := gateway.New(ctx, gateway.Config{…})
//	if err != nil { … }
//	defer g.Close()
//	s, err := g.Session("main", "s1", gateway.SessionOptions{})
//	answer, err := s.Turn(ctx, "Which of our issues are about leaks?")
//
// The life of a turn is in session.go, what code mode is to a gateway in codemode.go:
//
//	tools → policy → surface.Decide → Definitions.Render → CheckPayload → the provider
//	      ← trajectory.Projector ← Supervisor.Exec, Wait ← surface.ParseExec, ParseWait ←
//
// With code mode off the model calls the tools directly; they go the same way, by hook and
// approval, to the same functions.
//
// A Gateway owns its supervisor, the processes of its MCP servers and its connections, and Close
// ends them all. Sessions may be used side by side; the turns of one wait for each other.
//
// It does not retry, compact, or keep secrets in the transcript from its reader.
package gateway
