package extensions

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// extensionJSON is one extension in `list --json`; docs/schemas describes it.
type extensionJSON struct {
	Name        string      `json:"name"`
	Version     string      `json:"version"`
	Description string      `json:"description,omitempty"`
	Path        string      `json:"path"`             // the folder of its content
	Folder      string      `json:"folder"`           // its place in the extensions folder
	Source      *sourceJSON `json:"source,omitempty"` // absent when nothing is recorded
	Enabled     enabledJSON `json:"enabled"`
	InstalledBy string      `json:"installedBy"`
	Hash        string      `json:"hash,omitempty"` // of the content that pollux installed
	MCPServers  []string    `json:"mcpServers,omitempty"`
	Tools       []string    `json:"tools,omitempty"` // signatures
	Docs        []string    `json:"docs,omitempty"`
	Problem     string      `json:"problem,omitempty"` // why it does not load
	// Consent says whether its tools may run; absent if it has none, or does not load.
	Consent *tools.ConsentReport `json:"consent,omitempty"`
}

type sourceJSON struct {
	Type       string `json:"type"`
	Location   string `json:"location"`
	Ref        string `json:"ref,omitempty"`
	Subdir     string `json:"subdir,omitempty"`
	Commit     string `json:"commit,omitempty"`
	Release    string `json:"release,omitempty"`
	AutoUpdate bool   `json:"autoUpdate,omitempty"`
}

type enabledJSON struct {
	User      bool `json:"user"`
	Workspace bool `json:"workspace"`
}

func listCommand(kit *tools.Kit) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the installed extensions",
		Long: `Lists every installed extension. An extension that is disabled here, or does not
load, is listed with the reason. The exit code is 0 also when one does not load.`,
		Example: `  pollux extensions list --all
  pollux extensions list --json | jq '.extensions[].name'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, list, err := kit.Installed()
			if err != nil {
				return err
			}
			if asJSON {
				return kit.PrintJSON(map[string][]extensionJSON{"extensions": console.Each(list, func(x *store.Extension) extensionJSON { return withConsent(kit, x) })})
			}
			return printList(kit, list, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (its form: docs/schemas)")
	cmd.Flags().BoolVar(&all, "all", false, "with source, folder and capabilities of each")
	return cmd
}

func toJSON(x *store.Extension) extensionJSON {
	m := x.Manifest
	j := extensionJSON{
		Name: x.Name, Version: m.Version, Description: m.Description, Path: x.Dir, Folder: x.Folder,
		Enabled: enabledJSON{x.EnabledUser, x.EnabledHere}, InstalledBy: x.InstalledBy(), Problem: x.Problem,
		MCPServers: console.Each(m.MCPServers, func(s manifest.MCPServer) string { return s.Name }),
		Tools:      console.Each(m.Tools, manifest.Tool.Signature),
		Docs:       console.Each(m.Docs, func(d manifest.Doc) string { return d.Name }),
	}
	if x.Record != nil {
		j.Hash = x.Record.Hash
	}
	if meta := x.Metadata; meta != nil {
		j.Source = &sourceJSON{
			Type: meta.Type, Location: words.Address(meta.Source), Ref: meta.Ref, Commit: x.Commit(), Release: meta.ReleaseTag, AutoUpdate: meta.AutoUpdate,
		}
		if x.Record != nil && x.InstalledBy() == "pollux" {
			j.Source.Subdir = x.Record.Fetched.Source.Subdir
		}
	}
	return j
}

// withConsent is toJSON plus the user's consent, which requires reading the content.
func withConsent(kit *tools.Kit, x *store.Extension) extensionJSON {
	j := toJSON(x)
	j.Consent = consentOf(kit, x)
	return j
}

// consentOf says whether an extension's tools may run; nil if it has none, or does not load.
func consentOf(kit *tools.Kit, x *store.Extension) *tools.ConsentReport {
	if len(x.Manifest.Tools) == 0 || x.Problem != "" {
		return nil
	}
	c := kit.ConsentOf(x)
	return &c
}

// state returns an extension's state in one word.
func state(x *store.Extension) string {
	switch {
	case x.Problem != "":
		return "broken"
	case !x.EnabledHere:
		return "disabled"
	}
	return "enabled"
}

func printList(kit *tools.Kit, list []*store.Extension, all bool) error {
	if len(list) == 0 {
		kit.Say("no extensions are installed")
		return nil
	}
	rows := make([][]string, len(list))
	consents := make([]*tools.ConsentReport, len(list))
	for i, x := range list {
		consents[i] = consentOf(kit, x)
		description, _, _ := strings.Cut(x.Manifest.Description, "\n")
		rows[i] = []string{words.Printable(x.Name), cmp.Or(words.Printable(x.Manifest.Version), "–"), state(x) + consents[i].Short(), words.Printable(description)}
	}
	out := bufio.NewWriter(kit.Out)
	for i, line := range columns(rows, width(kit.Out)) {
		fmt.Fprintln(out, line)
		if all {
			j := toJSON(list[i])
			j.Consent = consents[i]
			for _, line := range more(j) {
				fmt.Fprintln(out, words.Printable(line))
			}
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	listTroubles(kit, list)
	for _, x := range list {
		if x.Problem != "" {
			kit.Note(x.Name + " does not load: " + x.Problem)
		}
	}
	return nil
}

// more returns what --all adds to an extension's line.
func more(j extensionJSON) []string {
	var lines []string
	if j.Source != nil {
		text := fmt.Sprintf("  source: %s (%s)", j.Source.Location, j.Source.Type)
		for _, part := range [][2]string{{"folder", j.Source.Subdir}, {"ref", j.Source.Ref}, {"release", j.Source.Release}, {"commit", j.Source.Commit}} {
			if part[1] != "" {
				text += ", " + part[0] + " " + part[1]
			}
		}
		lines = append(lines, text)
	}
	lines = append(lines, fmt.Sprintf("  folder: %s, installed by %s", j.Folder, j.InstalledBy))
	for _, part := range [][2]string{{"tools", strings.Join(j.Tools, ", ")}, {"MCP servers", strings.Join(j.MCPServers, ", ")}, {"docs", strings.Join(j.Docs, ", ")}} {
		if part[1] != "" {
			lines = append(lines, "  "+part[0]+": "+part[1])
		}
	}
	if j.Consent != nil {
		lines = append(lines, "  consent: "+j.Consent.Words)
	}
	return lines
}

// maxDescription is the maximum width of a description in columns, if the output is not a terminal.
const maxDescription = 60

// width returns the columns of a terminal; 0 if w is not one.
func width(w io.Writer) int {
	f := console.Terminal(w)
	if f == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// columns aligns rows in columns, and cuts the last cell of each so that the line fits into width columns; 0 means no
// limit. Characters count as wide as terminals show them.
func columns(rows [][]string, width int) []string {
	var widest [3]int
	for _, row := range rows {
		for i := range widest {
			widest[i] = max(widest[i], ansi.StringWidth(row[i]))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, w := range widest {
			b.WriteString(row[i] + strings.Repeat(" ", w-ansi.StringWidth(row[i])+2))
		}
		left := maxDescription
		if width > 0 {
			left = min(left, width-ansi.StringWidth(b.String()))
		}
		if left >= 8 {
			b.WriteString(ansi.Truncate(row[3], left, "…"))
		}
		lines[n] = strings.TrimRight(b.String(), " ")
		if width > 0 {
			lines[n] = ansi.Truncate(lines[n], width, "…")
		}
	}
	return lines
}

// absentPrograms returns the programs that tools need and PATH lacks, each once.
func absentPrograms(m *manifest.Manifest) []string {
	var absent []string
	for _, t := range m.Tools {
		program := runner.Program(t.Runtime)
		if _, err := exec.LookPath(program); err != nil && !slices.Contains(absent, program) {
			absent = append(absent, program)
		}
	}
	return absent
}

// listTroubles prints what stops loaded extensions from working here.
func listTroubles(kit *tools.Kit, list []*store.Extension) {
	missing := map[string][]string{}
	for _, x := range list {
		if x.Problem != "" {
			continue
		}
		for _, program := range absentPrograms(x.Manifest) {
			missing[program] = append(missing[program], x.Name)
		}
	}
	for _, program := range slices.Sorted(maps.Keys(missing)) {
		kit.Note(fmt.Sprintf("%s is not in PATH, and tools of %s need it", program, strings.Join(missing[program], ", ")))
	}
	s, err := kit.Store()
	if err != nil {
		return
	}
	if dir, err := console.Here("."); err == nil && s.TrustOf(dir) == clisettings.Distrusted {
		kit.Note("Gemini CLI does not trust this folder, and loads no extensions in it; /permissions in the CLI changes that")
	}
}
