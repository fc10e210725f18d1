package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
)

// askTimeout bounds a question to a running companion.
const askTimeout = 5 * time.Second

// find joins the companion that serves dir.
func (a *app) find(ctx context.Context, dir string) (*control.Client, error) {
	folder, err := here(dir)
	if err != nil {
		return nil, err
	}
	return control.Find(ctx, a.dirs.Run, folder)
}

func (a *app) envCommand() *cobra.Command {
	var shell, name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "env [DIR]",
		Short: "Print the variables by which a terminal's CLI finds the companion",
		Long: `Prints the variables of the companion that serves the current folder (or DIR),
for a terminal whose agent does not find it by itself: in tmux,
with another TMPDIR, or when several companions serve one folder. Of several, it is
the one whose folder is nearest, then the newest.

They hold the companion's token: print them into a shell, not into a file that
others can read.`,
		Example: `  eval "$(pollux env)"                                      sh, bash, zsh
  pollux env --shell fish | source                          fish
  pollux env --shell powershell | Out-String | iex          PowerShell
  pollux env --shell cmd > %TEMP%\p.bat && %TEMP%\p.bat     cmd`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.env(cmd.Context(), dirOf(args), shell, name, asJSON)
		},
	}
	cmd.Flags().StringVar(&shell, "shell", "", "the `SHELL` to print for: sh, fish, powershell or cmd (default: the one that runs pollux)")
	cmd.Flags().StringVar(&name, "agent", "", "only the variables of the agent `NAME`: "+strings.Join(envAgents(), ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(envAgents(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("shell", cobra.FixedCompletions(shellNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// envAgents are the names of the agents that have variables.
func envAgents() []string { return agentNames(func(a agent.Agent) bool { return a.Env != nil }) }

func dirOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func (a *app) env(ctx context.Context, dir, shell, name string, asJSON bool) error {
	if one, ok := agent.Find(name); name != "" && (!ok || one.Env == nil) {
		return usageError{fmt.Errorf("--agent %s: there are variables for: %s", name, strings.Join(envAgents(), ", "))}
	}
	if shell == "" {
		shell = shellHere()
	}
	assign, err := assigner(shell)
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := a.find(ctx, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	conn, err := c.Connection(ctx)
	if err != nil {
		return err
	}
	vars, err := variables(conn, name)
	if err != nil {
		return err
	}
	if asJSON {
		object := map[string]string{}
		for _, v := range vars {
			object[v.Name] = v.Value
		}
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		return enc.Encode(object)
	}
	var script strings.Builder // all or nothing: half of the variables lead a CLI astray
	for _, v := range vars {
		line, err := assign(v.Name, v.Value)
		if err != nil {
			return err
		}
		script.WriteString(line + "\n")
	}
	_, err = io.WriteString(a.stdout, script.String())
	return err
}

func (a *app) pageCommand() *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "page [DIR]",
		Short: "Print a fresh address of the running companion's editor page",
		Long: `Prints an address of the editor page of the companion that serves the current
folder (or DIR). It is good for one browser tab; ask again for another.`,
		Example: `  pollux page
  pollux page --open        open it in the browser instead`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
			defer cancel()
			c, err := a.find(ctx, dirOf(args))
			if err != nil {
				return err
			}
			defer c.Close()
			address, err := c.Page(ctx)
			if err != nil {
				return err
			}
			if open {
				return a.openPageNow(ctx, address)
			}
			_, err = fmt.Fprintln(a.stdout, address)
			return err
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser instead of printing its address")
	return cmd
}
