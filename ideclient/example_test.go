package ideclient_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/ideclient"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
)

// An editor stands in for the user's: a companion for a folder of its own, whose user
// accepts everything. dir is the folder, environ what finds it.
func editor() (dir string, environ []string, stop func()) {
	base, err := os.MkdirTemp("", "px")
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		log.Fatal(err)
	}
	c, err := clienttest.Start(clienttest.Options{Base: base})
	if err != nil {
		log.Fatal(err)
	}
	c.AcceptAll()
	return c.Root, []string{"TMPDIR=" + base, "SSH_CONNECTION=1"}, func() {
		_ = c.Stop()
		_ = os.RemoveAll(base)
	}
}

func Example() {
	dir, environ, stop := editor()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	c, err := ideclient.Connect(ctx, &ideclient.Options{Dir: dir, Environ: environ})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	path := filepath.Join(dir, "hello.txt")
	outcome, err := c.OpenDiff(ctx, path, "hello\n")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("accepted:", outcome.Accepted)
	if outcome.Accepted {
		fmt.Printf("to write: %q\n", *outcome.Content)
	}
	// Output:
	// accepted: true
	// to write: "hello\n"
}

func ExampleConnect() {
	dir, err := os.MkdirTemp("", "px")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	_, err = ideclient.Connect(context.Background(), &ideclient.Options{
		Dir: dir, Environ: []string{"TMPDIR=" + dir, "TERM_PROGRAM=vscode"},
	})
	fmt.Println(err)
	// Output:
	// Failed to connect to IDE companion extension. Please ensure the extension is running. To install the extension, run /ide install.
}

func ExampleOptions_onContext() {
	dir, environ, stop := editor()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	contexts := make(chan *ideclient.Context, 8)
	c, err := ideclient.Connect(ctx, &ideclient.Options{
		Dir: dir, Environ: environ,
		OnContext: func(ide *ideclient.Context) {
			select {
			case contexts <- ide:
			default: // the newest counts; a slow reader asks Client.Context
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ide := <-contexts // the first comes without being asked for
	fmt.Println("open files:", len(ide.Workspace.Files))
	c.Close()
	// Output:
	// open files: 0
}
