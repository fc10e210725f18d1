package extensions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/extensions"
)

// The whole loop of a program that lets a model use extensions.
func ExampleHost() {
	dir, err := os.MkdirTemp("", "extensions-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "home")
	if err := os.CopyFS(filepath.Join(home, ".gemini", "extensions", "hello-extension"), os.DirFS("../examples/hello-extension")); err != nil {
		panic(err)
	}
	host, err := extensions.Open(&extensions.Options{
		Home: home, State: filepath.Join(dir, "state"), WorkDir: dir, Name: "example",
		Ask: func(_ context.Context, q extensions.Question) (extensions.Answer, error) {
			fmt.Println(q.Title)
			return extensions.Always, nil
		},
	})
	if err != nil {
		panic(err)
	}
	answer := func(text string) {
		response, err := host.Respond(context.Background(), text)
		if err != nil {
			panic(err)
		}
		fmt.Print(response.Reply)
	}
	answer(`<tool_code>sayHello(name="Ada")</tool_code>`)
	answer(`<tool_code>sayHello(nam="Ada")</tool_code>`)
	summary, err := host.Summary(500)
	fmt.Println(strings.Contains(summary, "sayHello(name: string)"), err)
	// Output:
	// May the tool "sayHello" of the extension "hello-extension" run?
	// <tool_result tool="sayHello" status="ok">
	// Hello, Ada!
	// </tool_result>
	// <tool_result tool="sayHello" status="error">
	// the arguments do not fit sayHello(name: string): missing: name; unknown: nam (did you mean name?)
	// Correct the arguments and call the tool again.
	// </tool_result>
	// true <nil>
}
