package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// extensionJSON is one extension of `list --json`; docs/schemas describes it.
type extensionJSON struct {
	Name        string      `json:"name"`
	Version     string      `json:"version"`
	Description string      `json:"description,omitempty"`
	Path        string      `json:"path"`             // where its content lies
	Folder      string      `json:"folder"`           // its place in the extensions folder
	Source      *sourceJSON `json:"source,omitempty"` // absent when nothing is recorded
	Enabled     enabledJSON `json:"enabled"`
	InstalledBy string      `json:"installedBy"`
	Hash        string      `json:"hash,omitempty"` // of the content as pollux installed it
	MCPServers  []string    `json:"mcpServers,omitempty"`
	Tools       []string    `json:"tools,omitempty"` // signatures
	Docs        []string    `json:"docs,omitempty"`
	Problem     string      `json:"problem,omitempty"` // why it does not load
	// Consent is whether its tools may run; absent when it has none, or does not load.
	Consent *consentReport `json:"consent,omitempty"`
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

func (a *app) extensionsListCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the installed extensions",
		Long: `Lists every installed extension, also those that are disabled here or that do
not load, with the reason. The exit code is 0 also when one does not load.`,
		Example: `  pollux extensions list --all
  pollux extensions list --json | jq '.extensions[].name'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := a.store()
			if err != nil {
				return err
			}
			list, err := s.List()
			if err != nil {
				return err
			}
			if asJSON {
				return a.writeJSON(map[string][]extensionJSON{"extensions": each(list, a.withConsent)})
			}
			return a.list(list, all)
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
		MCPServers: each(m.MCPServers, func(s manifest.MCPServer) string { return s.Name }),
		Tools:      each(m.Tools, manifest.Tool.Signature),
		Docs:       each(m.Docs, func(d manifest.Doc) string { return d.Name }),
	}
	if x.Record != nil {
		j.Hash = x.Record.Hash
	}
	if meta := x.Metadata; meta != nil {
		j.Source = &sourceJSON{
			Type: meta.Type, Location: meta.Source, Ref: meta.Ref, Commit: x.Commit(), Release: meta.ReleaseTag, AutoUpdate: meta.AutoUpdate,
		}
		if x.Record != nil && x.InstalledBy() == "pollux" {
			j.Source.Subdir = x.Record.Fetched.Source.Subdir
		}
	}
	return j
}

// withConsent is toJSON with what the user agreed to, for which the content is read.
func (a *app) withConsent(x *store.Extension) extensionJSON {
	j := toJSON(x)
	if len(x.Manifest.Tools) > 0 && x.Problem == "" {
		c := a.consentOf(x)
		j.Consent = &c
	}
	return j
}

// state is an extension's state in one word.
func state(x *store.Extension) string {
	switch {
	case x.Problem != "":
		return "broken"
	case !x.EnabledHere:
		return "disabled"
	}
	return "enabled"
}

func (a *app) list(list []*store.Extension, all bool) error {
	if len(list) == 0 {
		a.say("no extensions are installed")
		return nil
	}
	out := bufio.NewWriter(a.stdout)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, x := range list {
		j := a.withConsent(x)
		line := words.Printable(x.Name) + "\t" + cmp.Or(words.Printable(x.Manifest.Version), "–") + "\t" + state(x) + j.Consent.short()
		if description, _, _ := strings.Cut(x.Manifest.Description, "\n"); description != "" {
			line += "\t" + words.Shorten(words.Printable(description), 60)
		}
		fmt.Fprintln(w, line)
		if all {
			for _, line := range more(j) {
				fmt.Fprintln(w, words.Printable(line)) // without a tab it belongs to no column
			}
		}
	}
	if err := errors.Join(w.Flush(), out.Flush()); err != nil {
		return err
	}
	for _, x := range list {
		if x.Problem != "" {
			a.note(x.Name + " does not load: " + x.Problem)
		}
	}
	return nil
}

// more is what --all adds to an extension's line.
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
		lines = append(lines, "  consent: "+j.Consent.words)
	}
	return lines
}
