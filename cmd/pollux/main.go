// Command pollux makes any editor an IDE for Gemini CLI.
package main

import (
	"os"

	"github.com/pollux-companion/pollux/internal/cli"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

func main() {
	sandbox.Reexec() // in a sandbox's first process it does not return
	escapes.Probe()  // nor here, in what a self-test runs inside
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
