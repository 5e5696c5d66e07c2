// Package gatewayrpc is the gateway protocol of `supervisor serve` (SPEC 21): JSON-RPC 2.0, one
// message a line, both ways, for gateways in any language. docs/serve.md is for those who
// write one, openrpc.json ([Schema]) for their tools.
//
//	srv := gatewayrpc.New(gatewayrpc.Options{Supervisor: s, Config: config})
//	err := srv.Serve(ctx, transport)  // one client, until it or ctx ends
//	err = srv.Listen(ctx, listener)   // many clients, see ListenUnix
//
// Who talks to whom:
//
//	client ──lines──▶ reader ──requests──▶ jrpc2.Server ──▶ handlers ──▶ supervisor
//	                    │                                      │             │
//	                    ├──answers───▶ jrpc2.Client ◀── ask ◀──┴── calls, hooks, approvals
//	                    └──notifications, handled at once
//	client ◀──lines── writer ◀── outbox ◀── answers, questions, notifications
//
// The library does what it is good at: it matches ids, runs handlers and encodes. What the
// other side may do to us is bounded before it, and behind it: the reader judges every line,
// and the outbox never blocks who holds one of the library's locks.
//
// Serve owns all goroutines of a connection, and returns when they and all runs of its handles
// are gone. The caller owns transport, listener and supervisor.
//
// It does not protect clients from each other beyond scopes and handles: who may connect may
// take all the places there are.
package gatewayrpc
