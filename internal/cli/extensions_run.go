package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// toolFlags are the flags of extensions run; what is none of them is an argument of the tool's.
type toolFlags struct {
	args              []string
	jsonArgs          string
	workspace         string
	time              time.Duration
	memory, output    string
	processes         int
	yes, json, unsafe bool
	explain           bool

	extension, tool string
	typed           []runner.TextArg
}

func (a *app) extensionsRunCommand() *cobra.Command {
	var f toolFlags
	cmd := &cobra.Command{
		Use:   "run EXT TOOL [--ARG VALUE…]",
		Short: "Run one tool of an extension, as a model would",
		Long: `Runs a tool in the sandbox that its extension's permissions describe, after
asking you, the first time, whether it may. Its arguments are flags: --file a.js
gives it the argument "file", --strict alone the boolean "strict". Those that have the name of a flag of pollux's
follow after --, or are given as --arg NAME=VALUE.

You are asked on this terminal, or else in the editor that pollux serves this
folder to. Where neither is there, what you did not allow before is refused. A
model's shell can neither answer nor use --yes.

The tool works in the root of your workspace: the nearest folder above that a
companion serves, else the current one. The exit code is the tool's own; 125
when the sandbox could not be set up, 137 when a limit ended it, 1 when it was
refused, 2 when the arguments do not fit.`,
		Example: `  pollux extensions run code-analyzer lintFile --file src/index.js
  pollux extensions run code-analyzer lintFile --json-args '{"file": "src/index.js"}' --json
  pollux extensions run code-analyzer lintFile --explain`,
		DisableFlagParsing: true, // the tool's own flags are not known to cobra
		Args:               f.parse,
		RunE:               func(cmd *cobra.Command, _ []string) error { return a.runTool(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.args, "arg", nil, "an argument, as `NAME=VALUE`; may be repeated")
	flags.StringVar(&f.jsonArgs, "json-args", "", "all arguments as one `JSON` object; - reads it from standard input")
	flags.BoolVarP(&f.yes, "yes", "y", false, "agree beforehand to this one run")
	flags.BoolVar(&f.json, "json", false, "print one JSON object with the answer and how it came about")
	flags.BoolVar(&f.explain, "explain", false, "print what the tool could read, change, contact and know, and run nothing")
	flags.StringVar(&f.workspace, "workspace", "", "the `DIR` that the tool works in (default: the nearest known root)")
	flags.DurationVar(&f.time, "time", 0, "how `LONG` it may take, as in 90s or 5m (default 1m0s, or as configured)")
	flags.StringVar(&f.memory, "memory", "", "how much memory all its processes may hold, a `SIZE` as in 512M or 2G (default 1G)")
	flags.StringVar(&f.output, "output", "", "how much it may print, a `SIZE` (default 10M)")
	flags.IntVar(&f.processes, "processes", 0, "how many processes it may have at once, a `NUMBER` from 301 (default 512)")
	flags.BoolVar(&f.unsafe, "unsafe-no-sandbox", false, "run it with all your rights, whatever its permissions say")
	return cmd
}

// parse takes the command line apart: pollux's own flags, EXT and TOOL, and
// the tool's arguments.
func (f *toolFlags) parse(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	own, plain, err := f.split(args, func(name string) *pflag.Flag {
		if flag := flags.Lookup(name); flag != nil {
			return flag
		}
		return cmd.InheritedFlags().Lookup(name)
	})
	if err == nil {
		err = flags.Parse(own)
	}
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if err != nil {
		return usageError{fmt.Errorf("%w; an argument of the tool's is written --NAME VALUE, and one with the name of a flag of pollux's --arg NAME=VALUE; see: %s --help", err, cmd.CommandPath())}
	}
	if help, _ := flags.GetBool("help"); help {
		return pflag.ErrHelp
	}
	if flags.Changed("workspace") && f.workspace == "" {
		return usageError{errors.New("--workspace: \"\" is no folder")}
	}
	if flags.Changed("time") && f.time <= 0 {
		return usageError{fmt.Errorf("--time %v: write a duration such as 90s or 5m", f.time)}
	}
	if len(plain) != 2 {
		return usageError{fmt.Errorf("%s takes EXT and TOOL, and the tool's arguments as --NAME VALUE, not %d words; see: %s --help", cmd.CommandPath(), len(plain), cmd.CommandPath())}
	}
	f.extension, f.tool = plain[0], plain[1]
	for _, text := range f.args {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return usageError{fmt.Errorf("--arg %q: write NAME=VALUE", text)}
		}
		f.typed = append(f.typed, runner.TextArg{Name: name, Value: value})
	}
	return nil
}

// split separates flags that lookup knows from the tool's arguments, which go
// to f.typed, and from other words. After -- all flags are the tool's.
func (f *toolFlags) split(args []string, lookup func(string) *pflag.Flag) (own, plain []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			lookup = func(string) *pflag.Flag { return nil }
			continue
		case !strings.HasPrefix(word, "-") || word == "-":
			plain = append(plain, word)
			continue
		case !strings.HasPrefix(word, "--"):
			own = append(own, word)
			continue
		}
		name, value, whole := strings.Cut(word[2:], "=")
		flag := lookup(name)
		next := i+1 < len(args) && (flag != nil || !strings.HasPrefix(args[i+1], "--"))
		switch {
		case flag != nil && (whole || flag.NoOptDefVal != ""):
			own = append(own, word)
			continue
		case !whole && !next && flag == nil:
			f.typed = append(f.typed, runner.TextArg{Name: name, Value: "true", Bare: true})
			continue
		case !whole && !next:
			return nil, nil, fmt.Errorf("--%s has no value; write --%s VALUE, or --%s=VALUE for one that begins with a dash", name, name, name)
		case !whole:
			i++
			value = args[i]
		}
		if flag != nil {
			own = append(own, word, value)
		} else {
			f.typed = append(f.typed, runner.TextArg{Name: name, Value: value})
		}
	}
	return own, plain, nil
}

// limits reads the flags of limits.
func (f *toolFlags) limits() (l sandbox.Limits, err error) {
	l.Time, l.Processes = f.time, f.processes
	if f.time < 0 || f.processes < 0 {
		return l, usageError{errors.New("a limit is negative")}
	}
	if f.memory != "" {
		if l.Memory, err = sizeOf("memory", f.memory); err != nil {
			return l, err
		}
	}
	if f.output != "" {
		l.Output, err = sizeOf("output", f.output)
	}
	return l, err
}

// request is what the flags ask for.
func (a *app) request(ctx context.Context, f *toolFlags) (q runner.Request, err error) {
	q = runner.Request{Extension: f.extension, Tool: f.tool, TextArgs: f.typed, Agreed: f.yes, Unsafe: f.unsafe}
	if q.Limits, err = f.limits(); err != nil {
		return q, err
	}
	switch f.jsonArgs {
	case "":
	case "-":
		if q.Args, err = io.ReadAll(io.LimitReader(a.stdin, 4<<20)); err != nil {
			return q, fmt.Errorf("reading the arguments from standard input: %w", err)
		}
	default:
		q.Args = json.RawMessage(f.jsonArgs)
	}
	if q.WorkDir, err = here("."); err != nil {
		return q, err
	}
	if f.workspace != "" {
		q.WorkDir, err = here(f.workspace)
		q.Roots = []string{q.WorkDir}
		return q, err
	}
	q.Roots = a.knownRoots(ctx)
	return q, nil
}

// knownRoots are the folders that companions serve.
func (a *app) knownRoots(ctx context.Context) []string {
	var roots []string
	for _, c := range control.List(ctx, a.dirs.Run) {
		roots = append(roots, c.Status.Roots...)
		c.Close()
	}
	return roots
}

// toolLimits are the limits of tools as the user set them.
func (a *app) toolLimits() sandbox.Limits {
	t := a.settings.Tools
	return sandbox.Limits{Time: time.Duration(t.Seconds) * time.Second, Memory: t.Memory, Output: t.Output, Processes: t.Processes}
}

// runner makes what runs tools; by says who asks, "" for the user.
func (a *app) runner(by string, asker consent.Asker) (*runner.Runner, error) {
	s, err := a.store()
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Options{
		Store: s, Consent: a.consent(), Asker: asker, Audit: a.audit(), Sandbox: a.newSandbox(a.settings.Tools.Reduced),
		Limits: a.toolLimits(), By: by, Log: a.log,
	}), nil
}

func (a *app) consent() *consent.Store { return consent.Open(a.dirs.State) }

func (a *app) audit() *audit.Log { return audit.Open(a.dirs.State) }

// runTool runs the command.
func (a *app) runTool(cmd *cobra.Command, f *toolFlags) error {
	ctx, stop := interrupted(cmd.Context())
	defer stop()
	q, err := a.request(ctx, f)
	if err != nil {
		return err
	}
	if err := a.guardFlags(ctx, f); err != nil {
		return err
	}
	r, err := a.runner("", a.asker())
	if err != nil {
		return err
	}
	if f.explain {
		return a.explainTool(ctx, r, q, f.json)
	}
	if f.unsafe {
		fmt.Fprintln(a.stderr, paint(a.stderr, red, "pollux: WARNING: --unsafe-no-sandbox: this tool runs with all your rights; its permissions are not enforced, and the audit log says so"))
	} else if os.Geteuid() == 0 {
		fmt.Fprintln(a.stderr, "pollux: warning: you are root; a mistake in the sandbox or in the kernel costs more than as an ordinary user")
	}
	result, err := r.Run(ctx, q)
	if ctx.Err() != nil {
		fmt.Fprintln(a.stderr, "pollux: interrupted; nothing of the tool is left")
		return exitError(exitCancelled)
	}
	if f.json {
		if jsonErr := a.writeJSON(newRunReport(result, err)); jsonErr != nil {
			return jsonErr
		}
	} else if result != nil {
		a.printOutput(result)
	}
	if result != nil {
		a.printRemarks(result)
		if result.Code != 0 {
			return exitError(result.Code)
		}
		return nil
	}
	return toolError(err)
}

// guardFlags keeps a model's shell from the flags that stand for the user's own word.
func (a *app) guardFlags(ctx context.Context, f *toolFlags) error {
	if !f.yes && !f.unsafe {
		return nil
	}
	if err := control.MayDecide(ctx, a.dirs.Run); err != nil {
		flag := "--yes"
		if f.unsafe {
			flag = "--unsafe-no-sandbox"
		}
		if !errors.Is(err, control.ErrFromAgent) {
			return noError{fmt.Errorf("%s is the user's own word, and whether this is an agent's shell cannot be told: %w", flag, err)}
		}
		return noError{fmt.Errorf("%s is the user's own word, which an agent's shell cannot give; leave it out, and the user is asked in the editor, or allows it in a terminal of their own with: pollux extensions consent grant %s", flag, f.extension)}
	}
	return nil
}

// toolError gives an error of the runner its exit code.
func toolError(err error) error {
	var unknown *runner.UnknownToolError
	var wrong *runner.ArgumentError
	var refused *runner.RefusedError
	switch {
	case errors.As(err, &wrong):
		return usageError{err}
	case errors.As(err, &unknown), errors.As(err, &refused):
		return noError{err}
	case errors.Is(err, sandbox.ErrSetup), errors.Is(err, sandbox.ErrUnsupported), errors.Is(err, sandbox.ErrPolicy), errors.Is(err, sandbox.ErrCommand):
		return sandboxError{err}
	}
	return extensionError(err)
}

// asker finds, when a question comes up, who can answer it: the person at this
// terminal, unless it is one that a model types on, or else in the editor.
func (a *app) asker() consent.Asker {
	return askerFunc(func(ctx context.Context, q consent.Question) (consent.Answer, error) {
		answer, err := a.askUser(ctx, q)
		if answer == consent.Always || answer == consent.Never {
			a.answered.Store(true)
		}
		return answer, err
	})
}

type askerFunc func(context.Context, consent.Question) (consent.Answer, error)

func (f askerFunc) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	return f(ctx, q)
}

func (a *app) askUser(ctx context.Context, q consent.Question) (consent.Answer, error) {
	if in := a.terminalIn(); in != nil && a.terminalErr() {
		answer, err := (&ask.Terminal{In: in, Out: a.stderr, Dirs: a.dirs.Run}).Ask(ctx, q)
		if !errors.Is(err, consent.ErrAgent) {
			return answer, err
		}
	}
	folder, err := here(".")
	if err != nil {
		return "", err
	}
	return (&ask.Editor{Dirs: a.dirs.Run, Folder: folder, Asking: func(editor string) {
		fmt.Fprintf(a.stderr, "pollux: you are asked in your editor (%s) whether this may run\n", words.Printable(editor))
	}}).Ask(ctx, q)
}

// terminalErr says that the user sees what is written to standard error.
func (a *app) terminalErr() bool {
	f, ok := a.stderr.(*os.File)
	return ok && isTerminal(f)
}
