package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// mentionTimeout is longer than the slowest terminal takes.
const mentionTimeout = 15 * time.Second

// mentionFlags choose the session and the output format.
type mentionFlags struct {
	session int
	agent   string
	words   string
	json    bool
}

// Mention makes pollux mention.
func Mention(con *console.Console) *cobra.Command {
	var f mentionFlags
	names := agent.Names(nil)
	cmd := &cobra.Command{
		Use:   "mention FILE[:LINES]",
		Short: "Put a mention of a file into an agent's prompt",
		Long: `Puts a mention of a file, of lines in it (FILE:12 or FILE:12-20), or of a folder
into the prompt of the agent that is connected to its folder's companion. The agent
does nothing before you press Enter there.

Claude Code, opencode (lines only) and GitHub Copilot CLI take it by their protocol.
For other agents, and with --words, pollux types it into the agent's terminal, by
tmux, screen, zellij, kitty, WezTerm or the editor. The agent must be in the
foreground there.

pollux refuses a file that holds secrets, a file that an ignore file for agents
(such as .geminiignore) lists, and a file that the agent's own settings keep from
its tools. An agent's shell cannot mention files: use a terminal of your own.

The exit code is 1 when there is no companion, or no agent that could take it.`,
		Example: `  pollux mention main.go
  pollux mention main.go:10-20 --words "why is this slow?"
  pollux mention src --agent claude
  pollux mention main.go:7 --session 2     of several; pollux status has the numbers`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return mention(cmd.Context(), con, args[0], f) },
	}
	cmd.Flags().IntVar(&f.session, "session", 0, "the session with this `NUMBER`")
	cmd.Flags().StringVar(&f.agent, "agent", "", "a session of the agent `NAME`: "+strings.Join(names, ", "))
	cmd.Flags().StringVar(&f.words, "words", "", "`TEXT` of yours that follows the mention, one line")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object instead")
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func mention(ctx context.Context, con *console.Console, what string, f mentionFlags) error {
	if _, ok := agent.Find(f.agent); f.agent != "" && !ok {
		return console.Usage(fmt.Errorf("--agent %s: there is no such agent", f.agent))
	}
	name, first, last, err := parseLines(what)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return fmt.Errorf("%q cannot be mentioned: %w", name, safefile.Cause(err))
	}
	ctx, cancel := context.WithTimeout(ctx, mentionTimeout)
	defer cancel()
	c, session, err := listening(ctx, con, path, f)
	if err != nil {
		return err
	}
	defer c.Close()
	done, err := c.Mention(ctx, control.Mention{Session: session, Path: path, First: first, Last: last, Words: f.words})
	if err != nil {
		return err
	}
	if f.json {
		return con.PrintJSON(done)
	}
	how := "by its protocol"
	if done.By != "protocol" {
		how = "typed by " + done.By
	}
	fmt.Fprintf(con.Out, "mentioned to %s, %s; nothing is sent before you press Enter there\n", done.Session, how)
	return nil
}

// listening returns the companion and session for a mention, among all companions of the file's folder.
func listening(ctx context.Context, con *console.Console, path string, f mentionFlags) (c *control.Client, session int, err error) {
	clients, silent := control.ListAll(ctx, con.Dirs.Run)
	var labels []string
	served := false
	for _, one := range clients {
		if !slices.ContainsFunc(one.Status.Roots, func(root string) bool { return paths.Within(root, path) }) {
			one.Close()
			continue
		}
		served = true
		sessions, _ := one.Sessions(ctx)
		for _, s := range sessions {
			if f.session != 0 && s.ID != f.session || f.agent != "" && s.Agent != f.agent {
				continue
			}
			labels = append(labels, fmt.Sprintf("%s (%s, process %d)", s.Label, one.Status.Editor, s.PID))
			if c == nil {
				c, session = one, s.ID
			}
		}
		if c != one {
			one.Close()
		}
	}
	switch {
	case len(labels) == 1:
		return c, session, nil
	case c != nil:
		c.Close()
		return nil, 0, console.Usage(fmt.Errorf("several agents could take it; choose by --session NUMBER or --agent NAME: %s", strings.Join(labels, ", ")))
	case !served && len(silent) > 0:
		return nil, 0, control.SilentError(silent)
	case !served:
		_, err := control.Find(ctx, con.Dirs.Run, path) // its error says what is running
		return nil, 0, err
	case f.session != 0 || f.agent != "":
		return nil, 0, console.No(errors.New("no such agent is connected to the companion of this folder; see: pollux status"))
	}
	return nil, 0, console.No(errors.New("no agent is connected to the companion of this folder; start one there, and pollux doctor says why it does not connect"))
}

// parseLines splits FILE, FILE:LINE or FILE:FIRST-LAST. An existing file with the whole name wins.
func parseLines(what string) (name string, first, last int, err error) {
	name, at, err := parsePlace(what)
	switch {
	case err != nil:
		return "", 0, 0, err
	case at != nil:
		return name, at.Line + 1, at.Line + 1, nil
	}
	rest, end, ok := cutLast(name, '-')
	if _, err := os.Lstat(name); err == nil || !ok {
		return name, 0, 0, nil
	}
	if rest, start, ok := cutLast(rest, ':'); ok {
		if start < 1 || end < start {
			return "", 0, 0, console.Usage(fmt.Errorf("%q: lines are counted from 1, and the last is not before the first", what))
		}
		return rest, start, end, nil
	}
	return name, 0, 0, nil
}

// cutLast cuts a number after a sign off the end.
func cutLast(s string, sign byte) (rest string, n int, ok bool) {
	i := strings.LastIndexByte(s, sign)
	if i <= 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	return s[:i], n, err == nil && n >= 0 && n <= 1<<31-1
}
