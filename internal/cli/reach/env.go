// Package reach holds the commands that talk to a running companion: show its address and variables, open a file or a
// diff, pause sharing, stop it, and connect a CLI to it.
package reach

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
)

// AskTimeout bounds a request to a running companion.
const AskTimeout = 5 * time.Second

// find joins the companion that serves dir.
func find(ctx context.Context, con *console.Console, dir string) (*control.Client, error) {
	folder, err := console.Here(dir)
	if err != nil {
		return nil, err
	}
	return control.Find(ctx, con.Dirs.Run, folder)
}

// Env makes pollux env.
func Env(con *console.Console) *cobra.Command {
	var shell, name string
	var asJSON bool
	names := agent.Names(nil)
	cmd := &cobra.Command{
		Use:   "env [DIR]",
		Short: "Print the variables by which a terminal's CLI finds the companion",
		Long: `Prints the variables of the companion that serves the current folder (or DIR),
for a terminal whose agent does not find it by itself: in tmux, with another
TMPDIR, or when several companions serve one folder. Of several companions it
takes the one with the nearest folder, and of these the newest.

They hold the companion's token: print them into a shell, not into a file that
others can read.`,
		Example: `  eval "$(pollux env)"                                      sh, bash, zsh
  pollux env --shell fish | source                          fish
  pollux env --shell powershell | Out-String | iex          PowerShell
  pollux env --shell cmd > %TEMP%\p.bat && %TEMP%\p.bat     cmd`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printEnv(cmd.Context(), con, console.DirOf(args), shell, name, asJSON)
		},
	}
	cmd.Flags().StringVar(&shell, "shell", "", "the `SHELL` to print for: sh, fish, powershell or cmd (default: the one that runs pollux)")
	cmd.Flags().StringVar(&name, "agent", "", "only the variables of the agent `NAME`: "+strings.Join(names, ", "))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("shell", cobra.FixedCompletions(shellNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func printEnv(ctx context.Context, con *console.Console, dir, shell, name string, asJSON bool) error {
	one, ok := agent.Find(name)
	if name != "" && !ok {
		return console.Usage(fmt.Errorf("--agent %s: the agents are %s", name, strings.Join(agent.Names(nil), ", ")))
	}
	if shell == "" {
		shell = ShellHere()
	}
	assign, err := assigner(shell)
	if err != nil {
		return console.Usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	c, err := find(ctx, con, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	conn, err := c.Connection(ctx)
	if err != nil {
		return err
	}
	vars, err := Variables(conn, name)
	if err != nil {
		return err
	}
	if one.Unaided != "" {
		con.Note(one.Label + " needs no variables: " + one.Unaided)
	}
	if asJSON {
		object := map[string]string{}
		for _, v := range vars {
			object[v.Name] = v.Value
		}
		enc := json.NewEncoder(con.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(object)
	}
	var script strings.Builder // all or nothing: some of the variables alone mislead a CLI
	for _, v := range vars {
		line, err := assign(v.Name, v.Value)
		if err != nil {
			return err
		}
		script.WriteString(line + "\n")
	}
	_, err = io.WriteString(con.Out, script.String())
	return err
}

// Page makes pollux page.
func Page(con *console.Console) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "page [DIR]",
		Short: "Print a fresh address of the running companion's editor page",
		Long: `Prints an address of the editor page of the companion that serves the current
folder (or DIR). The address works for one browser tab. For another tab, run it
again.`,
		Example: `  pollux page
  pollux page --open        open it in the browser instead`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), AskTimeout)
			defer cancel()
			c, err := find(ctx, con, console.DirOf(args))
			if err != nil {
				return err
			}
			defer c.Close()
			address, err := c.Page(ctx)
			if err != nil {
				return err
			}
			if open {
				return showPageNow(ctx, con, address)
			}
			_, err = fmt.Fprintln(con.Out, address)
			return err
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser instead of printing its address")
	return cmd
}

// Variables returns the variables by which an agent in this terminal finds the companion (SPEC D-7, Q-9); name is the
// agent's, "" for all agents.
func Variables(conn control.Connection, name string) (vars []discovery.Variable, err error) {
	e := agent.Endpoint{Port: conn.Port, Token: conn.Token, Roots: conn.Roots, PID: conn.PID, Alone: name != "", TempDir: conn.TempDir}
	for _, a := range agent.All() {
		if a.Env == nil || name != "" && name != a.Name {
			continue
		}
		more, err := a.Env(e, os.Getenv)
		if err != nil {
			return nil, err
		}
		vars = append(vars, more...)
	}
	return vars, nil
}
