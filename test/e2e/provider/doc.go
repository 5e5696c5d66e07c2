// Package provider is a model provider of which every word is written down beforehand: an
// HTTP server on 127.0.0.1 for the tests of gateways, in any language.
//
//	p, err := provider.Start()
//	if err != nil { … }
//	defer p.Close()
//	p.Script("model-a", provider.Reply{Exec: "return 1"}, provider.Reply{Text: "It is {{value}}."})
//	… a gateway that talks to p.URL as "model-a" …
//	bodies := p.Requests("model-a")
//
// It speaks OpenAI's chat completions (POST /v1/chat/completions) and Anthropic's messages
// (POST /v1/messages), in one piece or as a stream of server-sent events, as the request's
// "stream" has it. The model that a request names chooses the script, so that sessions
// that run side by side need not share one. Each request gets the script's next reply, and is
// kept as it came.
//
// As a real provider does, it refuses requests without a key, and conversations in which a tool
// call has no result or a result no call: a gateway that shows nested calls to the model fails
// here.
//
// A [Plan] is the same as data: the folder testdata/plan of package e2e, whose README says how to read it.
//
// [Server.Close] waits for the requests that are being answered.
package provider
