// Command check is the README's test command: it says which real programs it
// found, runs go test, shows what failed, lists what was left out and why,
// and ends with the plain line "N passed, N failed, N skipped".
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// config is what the command line asks for.
type config struct {
	require  bool
	race     bool
	short    bool
	again    int
	timeout  time.Duration
	packages []string
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&c.require, "require-peers", peers.Required(), "a test that is left out is a failure (or "+peers.RequireEnv+"=1)")
	flags.BoolVar(&c.race, "race", false, "run with the race detector")
	flags.BoolVar(&c.short, "short", false, "pass -short to go test")
	flags.IntVar(&c.again, "again", 0, "run up to this many failed tests once more, alone, and report them as unsteady if they pass then; never one that raced or died")
	flags.DurationVar(&c.timeout, "timeout", 15*time.Minute, "how long one package may take")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: go run ./internal/check [flags] [packages]   (default ./...)")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	c.packages = flags.Args()
	if len(c.packages) == 0 {
		c.packages = []string{"./..."}
	}
	return c, nil
}

// run returns 0 when all passed, 1 when not, 2 for wrong usage and 3 when go
// test could not be run at all.
func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	root, err := peers.Root()
	if err != nil {
		fmt.Fprintf(stderr, "check: %v; change to a clone of pollux first\n", err)
		return 3
	}
	showPeers(stdout, peers.Report())
	if dir := os.Getenv("TMPDIR"); unfit(dir) {
		fmt.Fprintf(stdout, "The name of the temporary folder %q is too long for sockets below it, or has a blank: the tests use /tmp.\n\n", dir)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	started := time.Now()
	t := newTally(stdout)
	for _, b := range batches(ctx, c, root) {
		if ctx.Err() != nil {
			break // interrupted
		}
		if err := test(ctx, c, b, root, t, stderr); err != nil {
			fmt.Fprintf(stderr, "check: go test could not be run: %v\n", err)
			return 3
		}
	}
	if err := again(ctx, c, root, t, stderr); err != nil {
		fmt.Fprintf(stderr, "check: go test could not be run again: %v\n", err)
		return 3
	}
	fmt.Fprintf(stdout, "\nin %s\n", time.Since(started).Round(100*time.Millisecond))
	return t.finish(c.require)
}

func showPeers(w io.Writer, report []peers.Finding) {
	fmt.Fprintln(w, "Real programs:")
	for _, f := range report {
		if f.Err != nil {
			fmt.Fprintf(w, "  – %s: %v; get it with: %s\n", f.Peer, f.Err, f.Peer.Install())
			continue
		}
		fmt.Fprintf(w, "  ✓ %s %s (%s)\n", f.Peer, f.Version, f.Path)
	}
	fmt.Fprintln(w)
}

// A batch is what one go test runs.
type batch struct {
	packages []string
	single   bool   // one package after the other
	tests    string // a pattern of go test -run; empty is all
}

// batches are what is to be tested: the tests of whole programs, below e2e,
// come last and one package after the other, since each wants the machine for
// itself. Names that go list does not know are left to go test to complain of.
func batches(ctx context.Context, c config, root string) []batch {
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, c.packages...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return []batch{{packages: c.packages}}
	}
	var parts, whole []string
	for name := range strings.FieldsSeq(string(out)) {
		if strings.Contains(name+"/", "/e2e/") {
			whole = append(whole, name)
		} else {
			parts = append(parts, name)
		}
	}
	return slices.DeleteFunc([]batch{{packages: parts}, {packages: whole, single: true}}, func(b batch) bool { return len(b.packages) == 0 })
}

// unfit says that a temporary folder is not for the tests: a socket's name is
// at most 104 bytes long, and they have theirs some folders below; and their
// smaller scripts quote no names.
func unfit(dir string) bool { return len(dir) > 60 || strings.ContainsAny(dir, " \t\n") }

// test runs go test and feeds its events to t. Failing tests are no error:
// t knows them.
func test(ctx context.Context, c config, b batch, root string, t *tally, stderr io.Writer) error {
	args := []string{"test", "-json", "-timeout", c.timeout.String()}
	if b.single {
		// Their programs wait for one another most of the time.
		args = append(args, "-p", "1", "-parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1))
	}
	if c.race {
		args = append(args, "-race", "-vet=off") // the run without the detector vets
	}
	if c.short {
		args = append(args, "-short")
	}
	if b.tests != "" {
		args = append(args, "-count=1", "-run", b.tests)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, b.packages...)...)
	cmd.Dir, cmd.Stderr = root, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = os.Environ()
	if unfit(os.Getenv("TMPDIR")) {
		cmd.Env = append(cmd.Env, "TMPDIR=/tmp")
	}
	if c.require {
		cmd.Env = append(cmd.Env, peers.RequireEnv+"=1")
	}
	if c.race && os.Getenv("GORACE") == "" {
		cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0") // a second for each of thousands of processes
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		t.line(line)
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.exited(err)
	}
	return nil
}
