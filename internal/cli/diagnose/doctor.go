// Package diagnose holds the commands that examine companions and agents: which are running, why an agent does not
// connect, whether a companion conforms to the contract, and what an agent tells its model.
package diagnose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/doctor"
	"github.com/pollux-companion/pollux/internal/words"
)

// textWidth is the column at which prose is wrapped.
const textWidth = 78

type doctorFlags struct {
	fix, json bool
	dir       string
	pid       int
	explain   string
	agent     agent.Agent
}

// Doctor makes pollux doctor. bridge returns findings about the bridge to extensions for a CLI with these settings,
// started in dir.
func Doctor(con *console.Console, bridge func(settings, dir string) []doctor.Finding) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [" + strings.Join(agent.Names(nil), "|") + "]",
		Short: "Say why an agent does not connect, and how to mend it",
		Long: `Repeats, step by step, how a Gemini CLI in this shell and folder looks for a
companion:

  - which process it takes for its editor, and which temp folder it looks into
  - which discovery files it sees, which one it takes, and why not the others
  - whether this folder lies in the companion's workspace
  - whether the companion answers, takes the token, offers diffs and sends context
  - whether IDE mode is on

Each finding says what is wrong, why it matters, and what to type. With the name
of another agent it repeats that agent's search instead.

It joins the companion for a moment and changes nothing there. The exit code is 0
only when the CLI would connect, with context and diffs.`,
		Example: `  pollux doctor
  pollux doctor claude
  pollux doctor --fix              remove dead files, switch IDE mode on
  pollux doctor --pid 4711         as that process sees it: a shell, or the CLI itself
  pollux doctor --explain "Directory mismatch"`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: agent.Names(nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.agent, _ = agent.Find(append(args, agent.Default)[0])
			if cmd.Flags().Changed("explain") {
				return explain(con, f.explain, f.json)
			}
			var err error
			switch {
			case f.pid == 0 && cmd.Flags().Changed("pid"):
				return console.Usage(errors.New("--pid: there is no process 0; name a shell, or the CLI itself"))
			case f.dir == "" && cmd.Flags().Changed("cwd"):
				_, err = console.Here("")
			case f.dir == "" && f.pid == 0:
				_, err = console.Here(".")
			}
			if err != nil {
				return err
			}
			return diagnose(cmd.Context(), con, f, bridge)
		},
	}
	cmd.Flags().BoolVar(&f.fix, "fix", false, "do what is safe: remove dead files, switch IDE mode on; then look again")
	cmd.Flags().BoolVar(&f.json, "json", false, "print a JSON object instead")
	cmd.Flags().StringVar(&f.dir, "cwd", "", "as if gemini were started in this `DIR`")
	cmd.Flags().IntVar(&f.pid, "pid", 0, "with the environment and folder of the process `PID`")
	cmd.Flags().StringVar(&f.explain, "explain", "", "explain a `TEXT` that the CLI has shown, and look at nothing")
	_ = cmd.RegisterFlagCompletionFunc("explain", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return sentences(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func diagnose(ctx context.Context, con *console.Console, f doctorFlags, bridge func(settings, dir string) []doctor.Finding) error {
	o, err := doctorOptions(con, f)
	if err != nil {
		return err
	}
	r, err := examine(ctx, o, bridge)
	if err != nil {
		return err
	}
	var done []string
	if f.fix {
		if done, err = doctor.Repair(ctx, o, r); err != nil {
			return err
		}
		if len(done) > 0 {
			if r, err = examine(ctx, o, bridge); err != nil {
				return err
			}
		}
	}
	if f.json {
		err = con.PrintJSON(struct {
			*doctor.Report
			Done []string `json:"done,omitempty"`
		}{r, done})
	} else {
		for _, line := range done {
			fmt.Fprintln(con.Out, line)
		}
		printFindings(con, r, f.agent)
	}
	if err == nil && !r.Connects {
		err = console.Exit(console.CodeNo)
	}
	return err
}

// examine runs doctor's examination, including the bridge of an agent that has one.
func examine(ctx context.Context, o doctor.Options, bridge func(settings, dir string) []doctor.Finding) (*doctor.Report, error) {
	r, err := doctor.Examine(ctx, o)
	if err == nil && o.Agent.Bridge {
		r.Findings = append(r.Findings, bridge(o.Settings, r.Dir)...)
	}
	return r, err
}

func doctorOptions(con *console.Console, f doctorFlags) (doctor.Options, error) {
	w, lacks := &client.World{}, []string(nil)
	if f.pid != 0 {
		var err error
		if w, lacks, err = client.OfProcess(f.pid); err != nil {
			return doctor.Options{}, err
		}
	}
	if f.dir != "" {
		dir, err := filepath.Abs(f.dir)
		if err == nil {
			_, err = console.Here(dir)
		}
		if info, serr := os.Stat(dir); err == nil && serr == nil && !info.IsDir() {
			err = fmt.Errorf("%q is not a folder; name the one that gemini is started in", f.dir)
		}
		if err != nil {
			return doctor.Options{}, console.Usage(fmt.Errorf("--cwd: %w", err))
		}
		w.Dir = dir
	}
	settings, err := f.agent.Settings.Path(w.Getenv)
	if err != nil {
		return doctor.Options{}, err
	}
	return doctor.Options{Agent: f.agent, World: w, PID: f.pid, Lacks: lacks, Run: con.Dirs.Run, Settings: settings, Others: doctor.Folders(true)[1:]}, nil
}

func printFindings(con *console.Console, r *doctor.Report, one agent.Agent) {
	out := con.Out
	for _, f := range r.Findings {
		mark := "  ok     "
		switch f.Level {
		case doctor.Note:
			mark = "  note   "
		case doctor.Warning:
			mark = "  WARN   "
		case doctor.Fault:
			mark = console.Paint(out, console.Red, "  FAULT  ")
		}
		fmt.Fprint(out, mark)
		fold(out, f.What, 9, 9)
		for _, d := range f.Details {
			fold(out, "- "+d, 9, 11)
		}
		if f.Why != "" {
			fold(out, "why it matters: "+f.Why, 9, 11)
		}
		if f.Mend != "" {
			fmt.Fprintf(out, "%*s%s\n", 9, "", console.Paint(out, console.Bold, "mend: "+words.Printable(f.Mend)))
		}
		if f.Remark != "" {
			fold(out, "("+f.Remark+")", 11, 11)
		}
	}
	fmt.Fprintln(out)
	who, with := "A "+one.Label, " with context and diffs"
	if strings.ContainsRune("AEIOUaeiou", rune(one.Label[0])) {
		who = "An " + one.Label
	}
	if one.Listen != nil && one.Shows == "" { // it has context alone
		with = ""
	}
	if r.Connects && r.Says == "" {
		fold(out, fmt.Sprintf("%s that is started in %s connects.", who, r.Dir), 0, 0)
		return
	}
	if r.Connects {
		fold(out, fmt.Sprintf("%s that is started in %s connects. It says: %s", who, r.Dir, r.Says), 0, 0)
		return
	}
	fmt.Fprintln(out, console.Paint(out, console.Bold, who+" that is started here does not connect"+with+"."))
	if r.Says != "" {
		fold(out, "It says: "+r.Says, 0, 0)
	}
}

// fold prints a paragraph, wrapped at words. first is the indentation of the first line, or what is already printed
// of it; rest that of the others. Words are made printable.
func fold(w io.Writer, text string, first, rest int) {
	text = words.Printable(text)
	column := first
	if strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "(") || first != rest {
		fmt.Fprint(w, strings.Repeat(" ", first))
	}
	for i, word := range strings.Fields(text) {
		width := len([]rune(word))
		if i > 0 {
			if column+1+width > textWidth {
				fmt.Fprint(w, "\n"+strings.Repeat(" ", rest))
				column = rest
			} else {
				fmt.Fprint(w, " ")
				column++
			}
		}
		fmt.Fprint(w, word)
		column += width
	}
	fmt.Fprintln(w)
}

// sentences returns the CLI's messages that doctor explains.
func sentences() []string {
	var known []string
	for _, e := range doctor.Explanations() {
		known = append(known, e.Says)
	}
	return known
}

func explain(con *console.Console, text string, asJSON bool) error {
	e, ok := doctor.Explain(text)
	if !ok {
		return console.No(errors.New("the CLI has no message with these words; pollux knows these:\n  " + strings.Join(sentences(), "\n  ")))
	}
	if asJSON {
		return con.PrintJSON(e)
	}
	fmt.Fprintln(con.Out, console.Paint(con.Out, console.Bold, e.Says))
	fold(con.Out, e.Means, 0, 0)
	for _, c := range e.Causes {
		fold(con.Out, "- "+c, 2, 4)
	}
	fmt.Fprintln(con.Out, "next: "+e.Next)
	return nil
}
