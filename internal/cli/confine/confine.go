// Package confine is pollux sandbox: it runs a command with only the permissions that the user names, explains a
// policy, and tests the known escapes.
package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// sandboxFlags are the permissions and limits of a command.
type sandboxFlags struct {
	read, write, workspace  string
	hosts                   []string
	time                    time.Duration
	memory, output, traffic string
	disk                    string
	json, reduced, explain  bool
	useProxy                bool
	raw, selfTest           bool
}

// Command makes pollux sandbox with its subcommands.
func Command(con *console.Console) *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "sandbox [flags] -- COMMAND ARGS…",
		Short: "Run a command with nothing but the rights that you name",
		Long: `Runs a command in a sandbox that the operating system enforces. Without flags
it may read nothing of yours, change nothing and contact nobody; it has the
system's programs, its own interpreter, and private temporary folders.

LEVEL is none, workspace (the folder of --workspace), home or full. Secret
stores, such as .ssh and the like, are out of reach at every level. HOST is
host (ports 443 and 80), scheme://host[:port] or *.domain.

On a terminal, and in a model's shell, its outputs lose the control sequences
that do more than paint: the clipboard, titles, links, questions to the terminal.
Files, and pipes of yours, get every byte; --raw passes everything everywhere.

The exit code is the command's own; 125 when the sandbox could not be set up,
137 when a limit ended the command.`,
		Example: `  pollux sandbox -- python3 -c 'print(6*7)'
  pollux sandbox --read workspace -- npm test
  pollux sandbox --write workspace --allow-host registry.example.com -- make
  pollux sandbox --explain --write workspace -- make    what it would be shown
  pollux sandbox check                                  what this machine can enforce
  pollux sandbox --self-test                            try to get out, on this machine`,
		Args: func(_ *cobra.Command, args []string) error {
			if f.selfTest && len(args) > 0 {
				return errors.New("--self-test runs no command")
			}
			if len(args) == 0 && !f.selfTest {
				return errors.New("no command to run; write it after --, as in: pollux sandbox -- true")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.selfTest {
				return selfTest(cmd.Context(), con, f.json)
			}
			return run(con, cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after the command belong to it
	flags.StringVar(&f.read, "read", "none", "what it may read: a `LEVEL`")
	flags.StringVar(&f.write, "write", "none", "what it may change, and read: a `LEVEL`")
	flags.StringArrayVar(&f.hosts, "allow-host", nil, "a `HOST` that it may contact; may be repeated")
	flags.BoolVar(&f.useProxy, "use-proxy", false, "contact its hosts through your own proxy (HTTPS_PROXY), which you trust")
	flags.StringVar(&f.workspace, "workspace", "", "the `DIR` that the level workspace means (default: the current folder)")
	flags.DurationVar(&f.time, "time", time.Minute, "how long it may take, a `DURATION` as in 90s or 5m")
	flags.StringVar(&f.memory, "memory", "1G", "how much memory all its processes may hold, a `SIZE` as in 512M or 2G")
	flags.StringVar(&f.output, "output", "10M", "how much it may write to its outputs, a `SIZE`")
	flags.StringVar(&f.traffic, "traffic", "1G", "how much it may exchange with its hosts, either way, a `SIZE`")
	flags.StringVar(&f.disk, "disk", "8G", "how much it may write to disks in all, a `SIZE` (Linux)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object at the end, with the outputs in it")
	flags.BoolVar(&f.explain, "explain", false, "say what it could read, change and contact, and run nothing; with --json as an object")
	flags.BoolVar(&f.raw, "raw", false, "pass every byte of its outputs on, to a terminal too")
	flags.BoolVar(&f.reduced, "reduced", false, "if full isolation is missing, accept less for policies that it still keeps")
	flags.BoolVar(&f.selfTest, "self-test", false, "try every known way out on this machine, and print what came of it")
	cmd.AddCommand(checkCommand(con))
	return cmd
}

// policy converts the flags to a policy.
func (f *sandboxFlags) policy() (p sandbox.Policy, err error) {
	if p.Read, err = permission.ParseAccess(f.read); err != nil {
		return p, console.Usage(fmt.Errorf("--read: %w", err))
	}
	if p.Write, err = permission.ParseAccess(f.write); err != nil {
		return p, console.Usage(fmt.Errorf("--write: %w", err))
	}
	for _, text := range f.hosts {
		h, err := permission.ParseHost(text)
		if err != nil {
			return p, console.Usage(fmt.Errorf("--allow-host %q: %w", text, err))
		}
		p.Hosts = append(p.Hosts, h)
	}
	return p, nil
}

// Size reads a number of bytes, with K, M or G for powers of 1024.
func Size(flag, text string) (int64, error) {
	number, factor := strings.ToUpper(strings.TrimSpace(text)), int64(1)
	number = strings.TrimSuffix(strings.TrimSuffix(number, "B"), "I")
	for i, unit := range []string{"K", "M", "G"} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, factor = rest, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)/factor {
		return 0, console.Usage(fmt.Errorf("--%s %q: write a size such as 512M or 2G", flag, text))
	}
	return n * factor, nil
}

// command returns the command that the flags and arguments describe.
func (f *sandboxFlags) command(args []string) (c sandbox.Command, err error) {
	c.Args = args
	if f.time <= 0 {
		return c, console.Usage(fmt.Errorf("--time %v: write a duration such as 90s or 5m", f.time))
	}
	c.Limits.Time = f.time
	if c.Limits.Memory, err = Size("memory", f.memory); err != nil {
		return c, err
	}
	if c.Limits.Output, err = Size("output", f.output); err != nil {
		return c, err
	}
	if c.Limits.Traffic, err = Size("traffic", f.traffic); err != nil {
		return c, err
	}
	if c.Limits.Disk, err = Size("disk", f.disk); err != nil {
		return c, err
	}
	if c.Dir, err = console.Here("."); err != nil {
		return c, err
	}
	c.Workspace = c.Dir
	if f.workspace != "" {
		c.Workspace, err = console.Here(f.workspace)
	}
	return c, err
}

// New returns a sandbox that runs commands, with ready processes from pool; nil: no pool.
//
// It uses the user's own proxy if useProxy says so.
func New(con *console.Console, reduced, useProxy bool, pool *sandbox.Pool) *sandbox.Sandbox {
	return sandbox.New(&sandbox.Options{
		Records:      filepath.Join(con.Dirs.State, "sandbox", "runs"),
		Masked:       append([]string{con.Dirs.State, con.Dirs.Config}, con.Dirs.Run...),
		AllowReduced: reduced,
		UseProxy:     useProxy,
		Log:          con.Log,
		Pool:         pool,
	})
}

func run(con *console.Console, cmd *cobra.Command, f *sandboxFlags, args []string) error {
	p, err := f.policy()
	if err != nil {
		return err
	}
	c, err := f.command(args)
	if err != nil {
		return err
	}
	if f.explain {
		return explain(cmd.Context(), con, f, p, c)
	}
	c.Stdin = con.In
	end := func() {}
	if !f.json {
		c.Stdout, c.Stderr, end = shown(con, f.raw)
	}
	if os.Geteuid() == 0 {
		fmt.Fprintln(con.Err, "pollux: warning: you are root; a mistake in the sandbox or in the kernel costs more than as an ordinary user")
	}
	ctx, stop := console.Interrupted(cmd.Context())
	defer stop()
	r, err := New(con, f.reduced, f.useProxy, nil).Run(ctx, p, c)
	end()
	if err != nil && r != nil {
		PrintQuarantined(con, r.Quarantined, "command")
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return refused(con, f, err)
	}
	return ended(con, f, r)
}

// refusal returns the error of a command that was not run: wrong usage, or a machine without a sandbox.
func refusal(err error) error {
	if errors.Is(err, sandbox.ErrPolicy) {
		return console.Usage(err)
	}
	return console.NotRun(err)
}

// refusalJSON is the output of --json for a command that was not run.
type refusalJSON struct {
	Error string `json:"error"`
	Phase string `json:"phase,omitempty"` // the failed step
	Fix   string `json:"fix,omitempty"`   // what to do
}

// refused reports that a command was not run.
func refused(con *console.Console, f *sandboxFlags, err error) error {
	if f.json {
		out := refusalJSON{Error: err.Error()}
		setup, unsupported := (*sandbox.SetupError)(nil), (*sandbox.UnsupportedError)(nil)
		switch {
		case errors.As(err, &setup):
			out.Phase, out.Fix = setup.Phase, setup.Fix
		case errors.As(err, &unsupported):
			out.Fix = unsupported.Fix
		}
		if err := json.NewEncoder(con.Out).Encode(out); err != nil {
			return err
		}
	}
	return refusal(err)
}

// explain prints what a command would be allowed to do, without running it.
func explain(ctx context.Context, con *console.Console, f *sandboxFlags, p sandbox.Policy, c sandbox.Command) error {
	plan, err := New(con, f.reduced, f.useProxy, nil).Explain(p, c)
	if err != nil {
		return refusal(err)
	}
	if f.json {
		return con.PrintJSON(plan)
	}
	_, err = fmt.Fprint(con.Out, plan)
	return err
}

// sandboxJSON is the output of --json.
type sandboxJSON struct {
	ExitCode     int                  `json:"exitCode"`
	Signal       int                  `json:"signal,omitempty"`
	Limit        string               `json:"limit,omitempty"` // time, processor, memory, output, traffic, disk or file
	Stdout       string               `json:"stdout"`
	Stderr       string               `json:"stderr"`
	Denials      []sandbox.Denial     `json:"denials"`
	Missed       sandbox.Missed       `json:"missed,omitempty"` // network or socket, guessed from the outputs of a command that failed
	Quarantined  []sandbox.Quarantine `json:"quarantined"`
	Milliseconds int64                `json:"milliseconds"`
	MemoryBytes  int64                `json:"memoryBytes"`
	Assurance    sandbox.Assurance    `json:"assurance"`
}

// ended reports how a command ended, and passes its exit code on.
func ended(con *console.Console, f *sandboxFlags, r *sandbox.Result) error {
	if f.json {
		out := sandboxJSON{ExitCode: r.Code, Signal: r.Signal, Stdout: string(r.Stdout), Stderr: string(r.Stderr), Denials: r.Denials, Missed: r.Missed, Quarantined: r.Quarantined,
			Milliseconds: r.Elapsed.Milliseconds(), MemoryBytes: r.Memory, Assurance: r.Assurance}
		if r.Limit != nil {
			out.Limit = r.Limit.Kind
		}
		out.Denials = append([]sandbox.Denial{}, out.Denials...)
		out.Quarantined = append([]sandbox.Quarantine{}, out.Quarantined...)
		data, err := json.Marshal(out)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(con.Out, words.EscapeJSON(string(data))); err != nil {
			return err
		}
	}
	for _, d := range r.Denials {
		at := d.Host
		if d.Port != 0 {
			at += ":" + strconv.Itoa(d.Port)
		}
		fmt.Fprintf(con.Err, "pollux: refused: %s (%s)\n", words.Printable(at), d.Why)
	}
	switch r.Missed {
	case sandbox.MissedNetwork:
		fmt.Fprintln(con.Err, "pollux: it seems to need the network; --allow-host HOST allows one host, and gives the command sockets of its own")
	case sandbox.MissedSocket:
		fmt.Fprintln(con.Err, `pollux: it seems to have tried a unix socket with a name, which no flag allows: it could reach services of this machine. In Python, multiprocessing.set_start_method("spawn") needs none, and multiprocessing.managers.SyncManager(("127.0.0.1", 0)) needs --allow-host only`)
	}
	PrintQuarantined(con, r.Quarantined, "command")
	switch {
	case r.Limit != nil:
		fmt.Fprintf(con.Err, "pollux: %v\n", r.Limit)
	case r.Signal != 0:
		fmt.Fprintf(con.Err, "pollux: the command was ended by signal %d\n", r.Signal)
	}
	if r.Code != 0 {
		return console.Exit(r.Code)
	}
	return nil
}

// PrintQuarantined lists the files that a command or tool created under protected names.
func PrintQuarantined(con *console.Console, all []sandbox.Quarantine, who string) {
	for _, q := range all {
		the := "the " + who
		if q.Earlier {
			the = "an earlier command, which was cut off,"
		}
		switch {
		case q.Moved != "":
			fmt.Fprintf(con.Err, "pollux: %s made %q, a name through which others run commands as you; it lies at %q now\n", the, q.Path, q.Moved)
			if q.Err != "" {
				fmt.Fprintf(con.Err, "pollux: %q: %s\n", q.Path, q.Err)
			}
		default:
			fmt.Fprintf(con.Err, "pollux: %s may have changed %q: %s\n", the, q.Path, q.Err)
		}
	}
}
