package cli

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
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/doctor"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// textWidth is what lines of prose are folded at.
const textWidth = 78

type doctorFlags struct {
	fix, json bool
	dir       string
	pid       int
	explain   string
	agent     agent.Agent
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [" + strings.Join(agentNames(nil), "|") + "]",
		Short: "Say why an agent does not connect, and how to mend it",
		Long: `Does what a Gemini CLI would do that is started in this shell and folder, step by
step: which process it takes for its editor's, in which temp folder it looks,
which discovery files it sees in which order, which one it takes and why not the
others; whether the folder lies in the workspace; whether the companion answers,
takes the token, offers diffs and sends a context; whether IDE mode is on. Each
finding says what is the matter, why it matters, and what to type. With claude or
qwen it does the same for Claude Code and Qwen Code, which look for lock files in
a folder of their own.

It joins the companion for a moment and leaves it as it was. The exit code is 0
only when the CLI would connect, with context and diffs.`,
		Example: `  pollux doctor
  pollux doctor claude
  pollux doctor --fix              remove dead files, switch IDE mode on
  pollux doctor --pid 4711         as that process sees it: a shell, or the CLI itself
  pollux doctor --explain "Directory mismatch"`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: agentNames(nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.agent, _ = agent.Find(append(args, agent.Gemini)[0])
			if cmd.Flags().Changed("explain") {
				return a.explain(f.explain, f.json)
			}
			var err error
			switch {
			case f.pid == 0 && cmd.Flags().Changed("pid"):
				return usageError{errors.New("--pid: there is no process 0; name a shell, or the CLI itself")}
			case f.dir == "" && cmd.Flags().Changed("cwd"):
				_, err = here("")
			case f.dir == "" && f.pid == 0:
				_, err = here(".")
			}
			if err != nil {
				return err
			}
			return a.doctor(cmd.Context(), f)
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

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	o, err := a.doctorOptions(f)
	if err != nil {
		return err
	}
	r, err := a.examine(ctx, o)
	if err != nil {
		return err
	}
	var done []string
	if f.fix {
		if done, err = doctor.Repair(ctx, o, r); err != nil {
			return err
		}
		if len(done) > 0 {
			if r, err = a.examine(ctx, o); err != nil {
				return err
			}
		}
	}
	if f.json {
		err = a.writeJSON(struct {
			*doctor.Report
			Done []string `json:"done,omitempty"`
		}{r, done})
	} else {
		for _, line := range done {
			fmt.Fprintln(a.stdout, line)
		}
		a.printFindings(r, f.agent.Label)
	}
	if err == nil && !r.Connects {
		err = exitError(exitNo)
	}
	return err
}

// examine is doctor's examination, with the bridge of an agent that has one.
func (a *app) examine(ctx context.Context, o doctor.Options) (*doctor.Report, error) {
	r, err := doctor.Examine(ctx, o)
	if err == nil && o.Agent.Bridge {
		r.Findings = append(r.Findings, bridgeFindings(o.Settings, r.Dir)...)
	}
	return r, err
}

// bridgeFindings say how the bridge to extensions stands beside a CLI's settings, for one that is started in dir.
func bridgeFindings(settings, dir string) []doctor.Finding {
	s, err := store.Open(&store.Options{Home: filepath.Dir(filepath.Dir(settings)), WorkDir: dir})
	if err != nil {
		return nil
	}
	st, err := bridge.Look(s)
	if err != nil {
		return []doctor.Finding{{ID: "bridge", Level: doctor.Warning, What: "the bridge to extensions cannot be looked at: " + err.Error()}}
	}
	var out []doctor.Finding
	for _, t := range st.Troubles {
		f := doctor.Finding{ID: "bridge", Level: doctor.Warning, What: t.What, Why: "the model has no tools of your extensions here, or not pollux's"}
		switch {
		case t.Kind == "missing" && !st.Installed:
			f.Level, f.Why = doctor.Note, "Gemini CLI knows the tools and documents of extensions by it alone"
		case !t.Stops:
			f.Why = "it can be taken for pollux, whose tools run in a sandbox"
		}
		if f.Remark = t.Mend; t.Command() {
			f.Mend, f.Remark = t.Mend, ""
		}
		out = append(out, f)
	}
	if st.Installed && len(out) == 0 {
		out = append(out, doctor.Finding{ID: "bridge", Level: doctor.OK, What: "the bridge to extensions is there, as the MCP server " + st.Server})
	}
	return out
}

func (a *app) doctorOptions(f doctorFlags) (doctor.Options, error) {
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
			_, err = here(dir)
		}
		if info, serr := os.Stat(dir); err == nil && serr == nil && !info.IsDir() {
			err = fmt.Errorf("%q is not a folder; name the one that gemini is started in", f.dir)
		}
		if err != nil {
			return doctor.Options{}, usageError{fmt.Errorf("--cwd: %w", err)}
		}
		w.Dir = dir
	}
	settings, err := f.agent.Settings.Path(w.Getenv)
	if err != nil {
		return doctor.Options{}, err
	}
	return doctor.Options{Agent: f.agent, World: w, PID: f.pid, Lacks: lacks, Run: a.dirs.Run, Settings: settings, Others: doctor.Folders(true)[1:]}, nil
}

func (a *app) printFindings(r *doctor.Report, label string) {
	out := a.stdout
	for _, f := range r.Findings {
		mark := "  ok     "
		switch f.Level {
		case doctor.Note:
			mark = "  note   "
		case doctor.Warning:
			mark = "  WARN   "
		case doctor.Fault:
			mark = paint(out, red, "  FAULT  ")
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
			fmt.Fprintf(out, "%*s%s\n", 9, "", paint(out, bold, "mend: "+words.Printable(f.Mend)))
		}
		if f.Remark != "" {
			fold(out, "("+f.Remark+")", 11, 11)
		}
	}
	fmt.Fprintln(out)
	if r.Connects && r.Says == "" {
		fold(out, fmt.Sprintf("A %s that is started in %s connects.", label, r.Dir), 0, 0)
		return
	}
	if r.Connects {
		fold(out, fmt.Sprintf("A %s that is started in %s connects. It says: %s", label, r.Dir, r.Says), 0, 0)
		return
	}
	fmt.Fprintln(out, paint(out, bold, "A "+label+" that is started here does not connect with context and diffs."))
	if r.Says != "" {
		fold(out, "It says: "+r.Says, 0, 0)
	}
}

// fold writes a paragraph that wraps at words. first says how far the first line is indented
// already or has to be, rest the others. A word may hold anything: it is made printable.
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

// sentences are the messages of the CLI that doctor explains.
func sentences() []string {
	var known []string
	for _, e := range doctor.Explanations() {
		known = append(known, e.Says)
	}
	return known
}

func (a *app) explain(text string, asJSON bool) error {
	e, ok := doctor.Explain(text)
	if !ok {
		return noError{errors.New("no sentence of the CLI's is known that holds this; these are known:\n  " + strings.Join(sentences(), "\n  "))}
	}
	if asJSON {
		return a.writeJSON(e)
	}
	fmt.Fprintln(a.stdout, paint(a.stdout, bold, e.Says))
	fold(a.stdout, e.Means, 0, 0)
	for _, c := range e.Causes {
		fold(a.stdout, "- "+c, 2, 4)
	}
	fmt.Fprintln(a.stdout, "next: "+e.Next)
	return nil
}
