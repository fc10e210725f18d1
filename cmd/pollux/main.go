// Command pollux makes any editor an IDE for terminal agents, and runs their extensions in a sandbox.
package main

import (
	"os"

	"github.com/pollux-companion/pollux/internal/cli"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

func main() {
	escapes.Probe() // in what a self-test runs inside it does not return
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
