package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// It needs the worker, which the tests of this package do without; that is why it has no Output
// comment. examples/embed is a whole program, and is run.
func Example() {
	s, err := supervisor.New(supervisor.Options{}) // qjs-worker is beside the program or in PATH
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	cat, _, err := catalog.Build([]catalog.Entry{{Name: "echo", Source: catalog.Client}}, catalog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	res := s.Exec(context.Background(), supervisor.Program{
		Code:    `const r = await tools.echo({v: 1}); r.v + 1`,
		Catalog: cat, // what the cell may call
		Executor: supervisor.ExecutorFunc(func(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
			return call.Input, nil // your policy, and the tool call.Tool.ID, go here
		}),
	})
	fmt.Println(res.Status, string(res.Value), res.Error) // completed 2
}
