// Package model holds the commands by which models learn about extensions and use them: as text, through the bridge
// to Gemini CLI, and through MCP.
package model

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/dispatch"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// recently is how many bytes at the end of the run log are read to find the extensions in use.
const recently = 256 << 10

// newDispatcher returns a dispatcher that answers calls from the current folder. by is the caller, "" for the user,
// who is also told what waits for consent. ends means that this process will not answer the caller's next call.
func newDispatcher(kit *tools.Kit, by string, asker consent.Asker, ends bool) (*dispatch.Dispatcher, error) {
	s, err := kit.Store()
	if err != nil {
		return nil, err
	}
	dir, err := console.Here(".")
	if err != nil {
		return nil, err
	}
	r, err := kit.Runner(by, asker)
	if err != nil {
		return nil, err
	}
	return dispatch.New(dispatch.Options{
		Store: s, Runner: r, WorkDir: dir, Roots: kit.KnownRoots, ForUser: by == "", Used: func() map[string]time.Time { return lastUsed(kit) }, Ends: ends,
	}), nil
}

// lastUsed returns when a tool of each extension last ran.
func lastUsed(kit *tools.Kit) map[string]time.Time {
	used := map[string]time.Time{}
	for _, e := range recentRuns(kit) {
		used[e.Extension] = e.Time
	}
	return used
}

// lately returns the tools that ran in the working folder's workspace, newest first.
func lately(kit *tools.Kit) []string {
	dir, err := console.Here(".")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range slices.Backward(recentRuns(kit)) {
		name := e.Extension + "." + e.Tool
		if rel, err := filepath.Rel(e.Workspace, dir); (e.Workspace == "" || err == nil && filepath.IsLocal(rel)) && !slices.Contains(out, name) {
			if out = append(out, name); len(out) == maxLately {
				break
			}
		}
	}
	return out
}

// recentRuns returns the last runs in the log, newest last.
func recentRuns(kit *tools.Kit) []audit.Entry {
	last, _ := kit.Audit().Last(recently) // without a log, nothing has run yet
	return slices.DeleteFunc(last, func(e audit.Entry) bool { return e.Event != audit.Started })
}

// maxLately bounds the tools that lately returns.
const maxLately = 12

func promptCommand(kit *tools.Kit) *cobra.Command {
	var format string
	var budget int
	cmd := &cobra.Command{
		Use:   "prompt",
		Short: "Print a summary of the extensions for the first prompt of a model",
		Long: `Prints a summary of the extensions that are enabled in this folder and that you
agreed to: names, descriptions, tool signatures and names of documents, and how
a model calls them. Put it into the first prompt of any model, and give what
the model writes to pollux extensions respond.

--budget bounds it to so many tokens (estimated: a quarter of the ASCII
characters, and one for each other character). Extensions that you used last, or
enabled for this folder alone, keep the most. The summary says how much is left
out.`,
		Example: `  pollux extensions prompt
  pollux extensions prompt --budget 500
  pollux extensions prompt --format json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return printSummary(kit, format, budget) },
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "markdown, or json for programs")
	cmd.Flags().IntVar(&budget, "budget", 0, "the most `TOKENS` that it may take (default: no bound)")
	return cmd
}

func printSummary(kit *tools.Kit, format string, budget int) error {
	if format != "markdown" && format != "json" {
		return console.Usage(fmt.Errorf("--format is markdown or json, not %q", format))
	}
	if budget < 0 {
		return console.Usage(fmt.Errorf("--budget is a number of tokens, not %d", budget))
	}
	d, err := newDispatcher(kit, "a model", nil, true) // nobody is asked, and waiting consents are not mentioned
	if err != nil {
		return err
	}
	set, err := d.Refresh()
	if err != nil {
		return err
	}
	s := prompt.Summarize(set, &prompt.SummaryOptions{Budget: budget})
	if budget > 0 && s.Tokens > budget {
		return console.Usage(fmt.Errorf("--budget %d is too small: the frame alone takes %d tokens", budget, s.Tokens))
	}
	if names := set.Waiting(); len(names) > 0 {
		kit.Note(fmt.Sprintf("not told, because you have not agreed to them yet: %s; allow one with: pollux extensions consent grant %s", strings.Join(names, ", "), names[0]))
	}
	if format == "json" {
		return kit.PrintJSON(s.JSON(set))
	}
	_, err = fmt.Fprint(kit.Out, s.Text)
	return err
}

func readCommand(kit *tools.Kit) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "read EXT DOC",
		Short: "Print a document of an extension",
		Long:  `Prints a document that an extension brings for models, as it lies in its file.`,
		Example: `  pollux extensions read code-analyzer linter-rules
  pollux extensions read code-analyzer linter-rules --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return console.Usage(fmt.Errorf("%s takes EXT and DOC, not %d words; see: %s --help", cmd.CommandPath(), len(args), cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return readDoc(kit, args[0], args[1], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	return cmd
}

// readReport is the JSON output of read.
type readReport struct {
	Extension string `json:"extension"`
	Doc       string `json:"doc"`
	Text      string `json:"text"` // the whole document; invalid UTF-8 becomes U+FFFD
}

func readDoc(kit *tools.Kit, extension, doc string, asJSON bool) error {
	s, err := kit.Store()
	if err != nil {
		return err
	}
	data, err := dispatch.Find(s, extension, doc)
	if errors.As(err, new(*dispatch.NoDocError)) {
		return console.No(err)
	}
	if err != nil {
		return tools.Coded(err)
	}
	if asJSON {
		return kit.PrintJSON(readReport{extension, doc, string(data)})
	}
	if kit.Painted() {
		data = []byte(terminalText(string(data)))
	}
	_, err = kit.Out.Write(data)
	return err
}

// terminalText returns untrusted text of many lines without terminal control characters.
func terminalText(text string) string {
	text = prompt.Visible(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// refreshBridge updates the bridge, if there is one, after extensions changed.
func refreshBridge(ctx context.Context, kit *tools.Kit) {
	if err := updateBridge(ctx, kit); err != nil {
		kit.Note(fmt.Sprintf("the bridge to Gemini CLI was not brought up to date (%v); do it with: pollux extensions bridge install", err))
	}
}

// bridgeOffer returns what the bridge describes: what is offered where no workspace rule says otherwise, and what is
// offered in the workspaces that have a rule, including the working folder's.
func bridgeOffer(kit *tools.Kit) (bridge.Offer, error) {
	s, err := homeStore(kit)
	if err != nil {
		return bridge.Offer{}, err
	}
	r, err := kit.Runner("a model", nil)
	if err != nil {
		return bridge.Offer{}, err
	}
	var dirs []string
	if dir, err := console.Here("."); err == nil {
		dirs = append(dirs, dir)
	}
	d := dispatch.New(dispatch.Options{Store: s, Runner: r, Used: func() map[string]time.Time { return lastUsed(kit) }})
	everywhere, in, err := d.Survey(append(dirs, bridge.Places(s)...)...)
	return bridge.Offer{Everywhere: everywhere, In: in}, err
}
