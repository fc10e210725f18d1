package tools

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

	"github.com/pollux-companion/pollux/internal/cli/confine"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// toolFlags are the flags of extensions run; any other flag is an argument of the tool.
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

func runCommand(kit *Kit) *cobra.Command {
	var f toolFlags
	cmd := &cobra.Command{
		Use:   "run EXT TOOL [--ARG VALUE…]",
		Short: "Run one tool of an extension, as a model would",
		Long: `Runs a tool in the sandbox that its extension's permissions describe. The first
time, it asks you whether the tool may run. The tool's arguments are flags:
--file a.js gives it the argument "file", --strict alone the boolean "strict". If
an argument has the name of one of pollux's flags, put it after --, or write
--arg NAME=VALUE.

You are asked on this terminal, or else in the editor that is connected to this
folder. Without either, a tool that you did not allow before is refused. A
model's shell can neither answer nor use --yes.

The tool works in the root of your workspace: the nearest folder above that a
companion serves, else the current folder. The exit code is the tool's own; 125
when the sandbox could not be set up, 137 when a limit ended it, 1 when it was
refused, 2 when the arguments do not fit.`,
		Example: `  pollux extensions run code-analyzer lintFile --file src/index.js
  pollux extensions run code-analyzer lintFile --json-args '{"file": "src/index.js"}' --json
  pollux extensions run code-analyzer lintFile --explain`,
		DisableFlagParsing: true, // cobra does not know the tool's flags
		Args:               f.parse,
		RunE:               func(cmd *cobra.Command, _ []string) error { return runTool(kit, cmd, &f) },
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

// parse splits the command line: pollux's own flags, EXT and TOOL, and the tool's arguments.
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
		return console.Usage(fmt.Errorf("%w; an argument of the tool's is written --NAME VALUE, and one with the name of a flag of pollux's --arg NAME=VALUE; see: %s --help", err, cmd.CommandPath()))
	}
	if help, _ := flags.GetBool("help"); help {
		return pflag.ErrHelp
	}
	if flags.Changed("workspace") && f.workspace == "" {
		return console.Usage(errors.New("--workspace: \"\" is no folder"))
	}
	if flags.Changed("time") && f.time <= 0 {
		return console.Usage(fmt.Errorf("--time %v: write a duration such as 90s or 5m", f.time))
	}
	if len(plain) != 2 {
		return console.Usage(fmt.Errorf("%s takes EXT and TOOL, and the tool's arguments as --NAME VALUE, not %d words; see: %s --help", cmd.CommandPath(), len(plain), cmd.CommandPath()))
	}
	f.extension, f.tool = plain[0], plain[1]
	for _, text := range f.args {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return console.Usage(fmt.Errorf("--arg %q: write NAME=VALUE", text))
		}
		f.typed = append(f.typed, runner.TextArg{Name: name, Value: value})
	}
	return nil
}

// split separates flags that lookup knows from the tool's arguments, which go to f.typed, and from other words. All
// flags after -- belong to the tool.
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
		return l, console.Usage(errors.New("a limit is negative"))
	}
	if f.memory != "" {
		if l.Memory, err = confine.Size("memory", f.memory); err != nil {
			return l, err
		}
	}
	if f.output != "" {
		l.Output, err = confine.Size("output", f.output)
	}
	return l, err
}

// request converts the flags to a request.
func request(ctx context.Context, kit *Kit, f *toolFlags) (q runner.Request, err error) {
	q = runner.Request{Extension: f.extension, Tool: f.tool, TextArgs: f.typed, Agreed: f.yes, Unsafe: f.unsafe}
	if q.Limits, err = f.limits(); err != nil {
		return q, err
	}
	switch f.jsonArgs {
	case "":
	case "-":
		if q.Args, err = io.ReadAll(io.LimitReader(kit.In, 4<<20)); err != nil {
			return q, fmt.Errorf("reading the arguments from standard input: %w", err)
		}
	default:
		q.Args = json.RawMessage(f.jsonArgs)
	}
	if q.WorkDir, err = console.Here("."); err != nil {
		return q, err
	}
	if f.workspace != "" {
		q.WorkDir, err = console.Here(f.workspace)
		q.Roots = []string{q.WorkDir}
		return q, err
	}
	q.Roots = kit.KnownRoots(ctx)
	return q, nil
}

// runTool runs the command.
func runTool(kit *Kit, cmd *cobra.Command, f *toolFlags) error {
	ctx, stop := console.Interrupted(cmd.Context())
	defer stop()
	q, err := request(ctx, kit, f)
	if err != nil {
		return err
	}
	if err := guardFlags(ctx, kit, f); err != nil {
		return err
	}
	r, err := kit.Runner("", kit.Asker())
	if err != nil {
		return err
	}
	if f.explain {
		return explainTool(ctx, kit, r, q, f.json)
	}
	if f.unsafe {
		fmt.Fprintln(kit.Err, console.Paint(kit.Err, console.Red, "pollux: WARNING: --unsafe-no-sandbox: this tool runs with all your rights; its permissions are not enforced, and the audit log says so"))
	} else if os.Geteuid() == 0 {
		fmt.Fprintln(kit.Err, "pollux: warning: you are root; a mistake in the sandbox or in the kernel costs more than as an ordinary user")
	}
	result, err := r.Run(ctx, q)
	if ctx.Err() != nil {
		fmt.Fprintln(kit.Err, "pollux: interrupted; nothing of the tool is left")
		return console.Exit(console.CodeCancelled)
	}
	if f.json {
		if jsonErr := kit.PrintJSON(newRunReport(result, err)); jsonErr != nil {
			return jsonErr
		}
	} else if result != nil {
		printOutput(kit, result)
	}
	if result != nil {
		printRemarks(kit, result)
		if result.Code != 0 {
			return console.Exit(result.Code)
		}
		return nil
	}
	return toolError(err)
}

// ByPerson refuses an agent's shell what only the user may do.
func ByPerson(ctx context.Context, kit *Kit, what string) error {
	switch err := control.MayDecide(ctx, kit.Dirs.Run); {
	case errors.Is(err, control.ErrFromAgent):
		return console.No(fmt.Errorf("%s is for the user, and this is an agent's shell; run it in a terminal of yours (if this is one: pollux doctor)", what))
	case err != nil:
		return console.No(fmt.Errorf("%s is for the user, and whether this is an agent's shell cannot be told: %w", what, err))
	}
	return nil
}

// NotByAgent is ByPerson for what no editor can be asked instead: an agent in a container, whose process is unknown,
// keeps nobody from it.
func NotByAgent(ctx context.Context, kit *Kit, what string) error {
	err := ByPerson(ctx, kit, what)
	if errors.Is(err, control.ErrUnknownAgent) && !errors.Is(err, control.ErrSilent) {
		return nil
	}
	return err
}

// guardFlags refuses a model's shell the flags that stand for the user's consent.
func guardFlags(ctx context.Context, kit *Kit, f *toolFlags) error {
	if !f.yes && !f.unsafe {
		return nil
	}
	if err := control.MayDecide(ctx, kit.Dirs.Run); err != nil {
		flag := "--yes"
		if f.unsafe {
			flag = "--unsafe-no-sandbox"
		}
		if !errors.Is(err, control.ErrFromAgent) {
			return console.No(fmt.Errorf("%s is the user's own word, and whether this is an agent's shell cannot be told: %w", flag, err))
		}
		return console.No(fmt.Errorf("%s is the user's own word, which an agent's shell cannot give; leave it out, and the user is asked in the editor, or allows it in a terminal of their own with: pollux extensions consent grant %s", flag, f.extension))
	}
	return nil
}

// toolError adds the exit code to an error of the runner.
func toolError(err error) error {
	var unknown *runner.UnknownToolError
	var wrong *runner.ArgumentError
	var refused *runner.RefusedError
	switch {
	case errors.As(err, &wrong):
		return console.Usage(err)
	case errors.As(err, &unknown), errors.As(err, &refused):
		return console.No(err)
	case errors.Is(err, sandbox.ErrSetup), errors.Is(err, sandbox.ErrUnsupported), errors.Is(err, sandbox.ErrPolicy), errors.Is(err, sandbox.ErrCommand):
		return console.NotRun(err)
	}
	return Coded(err)
}

// Commands returns this package's commands of pollux extensions.
func Commands(kit *Kit) []*cobra.Command {
	return []*cobra.Command{runCommand(kit), auditCommand(kit)}
}
