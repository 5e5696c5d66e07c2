// Embed is a gateway in small: it shows a model two tools instead of all it has, checks what it
// sends, runs what the model wrote, and asks a person before mail goes out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// What the run may use. Policy is applied to it before anything else is.
var tools = catalog.Policy{Approve: []string{"plugin:mail:*"}, Deny: []string{"drop_*"}}.Apply([]catalog.Entry{
	{Name: "contacts", Source: catalog.OpenClaw, Description: "List the people that the user knows"},
	{Name: "send", Source: catalog.Plugin, SourceName: "mail", Description: "Send a mail",
		Parameters: json.RawMessage(`{"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}`)},
	{Name: "drop_database", Source: catalog.OpenClaw},
})

// call runs one nested call. What policy denies or nobody approved never comes here.
func call(_ context.Context, c *supervisor.Call) (json.RawMessage, error) {
	if c.Tool.ID == "openclaw:core:contacts" {
		return json.RawMessage(`["ada@example.org", "bob@example.org"]`), nil
	}
	fmt.Println("sending", string(c.Input))
	return json.RawMessage(`"sent"`), nil
}

// approve would ask the user, on another channel; the run is parked meanwhile.
func approve(_ context.Context, a *supervisor.Approval) error {
	a.Hold("approval")
	fmt.Printf("may %s have %s? yes\n", a.Event.ToolID, a.Event.Params)
	return nil // an error is a no
}

func main() {
	ctx := context.Background()
	s, err := supervisor.New(supervisor.Options{}) // qjs-worker is beside the program, or in PATH
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	// What the model is shown, and the guard in front of the provider.
	d, err := surface.Decide(surface.Run{Global: []byte(`{enabled: true, timeoutMs: 5000}`), Entries: tools})
	if err != nil {
		log.Fatal(err) // never show the tools instead
	}
	payload := []byte(`{"model": "…", "tools": ` + string(d.Definitions.Render(surface.OpenAIChat, true)) + `}`)
	if err := d.CheckPayload(payload, surface.OpenAIChat); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the model sees", d.VisibleTools())

	// What the model answers: one call of exec.
	in, err := surface.ParseExec([]byte(`{"code": "const all = await tools.contacts();\nfor (const to of all) await tools.send({to});\nall.length"}`), d.Limits.Languages)
	if err != nil {
		log.Fatal(err)
	}
	res := s.Exec(ctx, supervisor.Program{
		Code: in.Code, Language: in.Language, Catalog: d.Catalog, Limits: d.Limits,
		Executor: supervisor.ExecutorFunc(call), Hooks: supervisor.Hooks{Approve: approve},
		Scope: supervisor.Scope{AgentID: "main", SessionID: "s1"}, ParentCallID: "call_1",
	})
	for res.Status == supervisor.Waiting { // the model would call wait; here nobody else does
		res = s.Wait(ctx, supervisor.WaitRequest{RunID: res.RunID, Scope: supervisor.Scope{AgentID: "main", SessionID: "s1"}})
	}
	fmt.Println(res.Status, string(res.Value)+res.Error)
	// Output:
	// the model sees [exec wait]
	// may plugin:mail:send have {"to":"ada@example.org"}? yes
	// sending {"to":"ada@example.org"}
	// may plugin:mail:send have {"to":"bob@example.org"}? yes
	// sending {"to":"bob@example.org"}
	// completed 2
}
