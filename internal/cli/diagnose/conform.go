package diagnose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/conform/editor"
)

type conformFlags struct {
	pid, port                     int
	tokenFile, dir, driver, only  string
	with                          []string
	json, junit, slow, allVisible bool
	editor                        bool
	keys, plug                    string
	wait                          time.Duration
}

// Conform makes pollux conform.
func Conform(con *console.Console) *cobra.Command {
	var f conformFlags
	cmd := &cobra.Command{
		Use:   "conform [--pid PID | --port PORT --token-file FILE | -- COMMAND… | --editor -- COMMAND…]",
		Short: "Test any companion against the contract with agents, or an editor's plugin",
		Long: `Tests a companion against the contract, with hundreds of named checks. Each
check has its number in the specification. A failed check says what was seen.

Name a running companion by its process, or by its port and token. Or give
COMMAND: pollux starts it in a workspace of its own and ends it afterwards. Its
output is shown with --verbose, or when it does not start. With --pid the
companion is also tried as Claude Code and Qwen Code find it, if it has locks
for them.

The checks open diffs in the editor and close them again. Some checks need a
user: a driver plays it, a program that reads one JSON object a line and answers
each (see docs/conform.md). Without a driver these checks are skipped, and
listed as skipped.

The exit code is 0 when no check has failed.`,
		Example: `  pollux conform --pid 4711 --slow           with the checks that take a minute
  pollux conform --port 41234 --token-file -  <token.txt
  pollux conform --driver ./drive-my-editor --junit -- my-companion >report.xml
  pollux conform --editor --keys keys.json -- my-editor`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.plug != "" {
				return console.Exit(editor.Plug(cmd.Context(), f.plug, args, con.In, con.Out, con.Err))
			}
			if f.json && f.junit {
				return console.Usage(errors.New("--json and --junit are two forms of the report; use one of them"))
			}
			for _, name := range f.with { // before starting anything
				if known := conform.Settings(); !slices.Contains(known, name) {
					return console.Usage(fmt.Errorf("--with knows no setting %q; it knows %s", name, strings.Join(known, ", ")))
				}
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			if f.editor {
				return tryEditor(ctx, con, f, args)
			}
			return tryCompanion(ctx, con, f, args)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.pid, "pid", 0, "the companion whose discovery file names the process `PID`")
	flags.IntVar(&f.port, "port", 0, "the companion that listens on this `PORT`")
	flags.StringVar(&f.tokenFile, "token-file", "", "read its token from `FILE`, or from standard input when it is -")
	flags.StringVar(&f.dir, "dir", ".", "a folder `DIR` of its workspace, with --port")
	flags.StringVar(&f.driver, "driver", "", "`COMMAND` that plays the user; - is whoever reads standard output and answers on standard input")
	flags.StringSliceVar(&f.with, "with", nil, "`SETTINGS` that the companion has: writeFile, extraHost, legacyDiffClosed, nul")
	flags.BoolVar(&f.editor, "editor", false, "try the plugin of the editor that COMMAND starts")
	flags.StringVar(&f.keys, "keys", "", "with --editor, what a user of it types: a JSON `FILE` of actions and keys")
	flags.DurationVar(&f.wait, "wait", 10*time.Second, "with --editor, how long the plugin may take for anything")
	flags.StringVar(&f.plug, editor.PlugFlag, "", "connect to a run of conform at `ADDRESS`, as the pollux that a plugin starts")
	_ = flags.MarkHidden(editor.PlugFlag)
	flags.BoolVar(&f.slow, "slow", false, "also the checks that take up to a minute")
	flags.StringVar(&f.only, "only", "", "only checks whose name begins with `NAME`, such as F-4")
	flags.BoolVarP(&f.allVisible, "all", "a", false, "list every check, not only those that failed")
	flags.BoolVar(&f.json, "json", false, "print a JSON list instead")
	flags.BoolVar(&f.junit, "junit", false, "print a JUnit report instead")
	return cmd
}

// untilSignal ends the context at the first signal that asks pollux to end, or when nobody reads its output any more,
// so that the started companion does not stay behind.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	sigs := console.CatchSignals()
	go func() {
		defer cancel()
		select {
		case <-sigs.End:
		case <-sigs.Pipe:
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); sigs.Stop() }
}

func tryCompanion(ctx context.Context, con *console.Console, f conformFlags, args []string) error {
	report := con.Out
	if f.driver == "-" {
		report = con.Err // the driver uses standard output
	}
	t, err := conformTarget(ctx, con, f, args)
	if err != nil {
		return err
	}
	if t.Command != nil {
		defer t.Command.End()
	}
	t.With, t.Only = f.with, f.only
	if f.slow {
		t.Silence, t.Grace = time.Minute, 30*time.Second
	}
	stop, err := conformDriver(ctx, con, &t, f.driver)
	if err != nil {
		return err
	}
	defer stop()
	return inform(con, report, f, func(each func(conform.Check)) ([]conform.Check, error) { return conform.Run(ctx, t, each) })
}

func conformTarget(ctx context.Context, con *console.Console, f conformFlags, args []string) (conform.Target, error) {
	ways := 0
	for _, given := range []bool{f.pid != 0, f.port != 0, len(args) > 0} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return conform.Target{}, console.Usage(errors.New("name one companion: --pid PID, --port PORT with --token-file, or -- COMMAND…; pollux status lists those that run"))
	}
	if len(args) > 0 {
		output := io.Discard
		if con.Verbose {
			output = con.Err
		}
		return conform.Start(ctx, args, output)
	}
	dir, err := console.Here(f.dir)
	if err != nil {
		return conform.Target{}, err
	}
	if f.pid != 0 {
		entries, err := discovery.List(discovery.Dir())
		if err != nil {
			return conform.Target{}, err
		}
		for _, e := range entries {
			if e.PID == f.pid && e.File.Port != 0 && len(e.File.Roots) > 0 {
				return conform.Target{Addr: local(e.File.Port), Token: e.File.Token, Dir: e.File.Roots[0], File: e.Path, Others: others(e.File.Port, f.pid)}, nil
			}
		}
		return conform.Target{}, console.No(fmt.Errorf("no discovery file in %s is of process %d; pollux status lists the companions", discovery.Dir(), f.pid))
	}
	if f.tokenFile == "" {
		return conform.Target{}, console.Usage(errors.New("--port needs --token-file: FILE, or - for standard input"))
	}
	var data []byte
	if f.tokenFile == "-" {
		data, err = io.ReadAll(io.LimitReader(con.In, 64<<10))
	} else {
		data, err = os.ReadFile(f.tokenFile)
	}
	return conform.Target{Addr: local(f.port), Token: string(bytes.TrimSpace(data)), Dir: dir}, err
}

// others returns the agents besides Gemini CLI that a process's companion serves, at a port or a socket.
func others(port, pid int) (all []conform.Other) {
	for _, a := range agent.All() {
		if door, ok := a.DoorOf(port, pid); ok && a.With == "" {
			all = append(all, conform.Other{Name: a.Name, Label: a.Label, Trials: a.Trials, Door: door})
		}
	}
	return all
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// conformDriver starts the driver, if any; stop ends it.
func conformDriver(ctx context.Context, con *console.Console, t *conform.Target, command string) (stop func(), err error) {
	switch command {
	case "":
		return func() {}, nil
	case "-":
		t.Driver = conform.NewLineDriver(con.In, con.Out)
		return func() {}, nil
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, console.Usage(errors.New("--driver names no command"))
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Stderr = t.Dir, con.Err
	if !filepath.IsAbs(words[0]) && strings.ContainsRune(words[0], filepath.Separator) {
		if cmd.Path, err = filepath.Abs(words[0]); err != nil {
			return nil, err
		}
	}
	cmd.Env = append(os.Environ(), "POLLUX_CONFORM_DIR="+t.Dir, "POLLUX_CONFORM_FILE="+t.File)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the driver does not start: %w", err)
	}
	t.Driver = conform.NewLineDriver(out, in)
	return func() {
		in.Close()
		timer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait()
	}, nil
}
