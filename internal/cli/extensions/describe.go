package extensions

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

func describeCommand(kit *tools.Kit) *cobra.Command {
	var asJSON, verify bool
	cmd := &cobra.Command{
		Use:   "describe NAME|PATH",
		Short: "Show what an extension is, brings and may do",
		Long: `Shows everything about one extension: where it came from and who installed it;
what its tools may read, change and contact (anything else is denied); its tools
with their signatures, documents, examples, MCP servers and hooks; and what is
wrong with it. A PATH (with a slash in it) is described without installing it.

--verify compares the content with the content that was installed. The exit code
is 1 when they differ, or when nothing was recorded at the installation.`,
		Example: `  pollux extensions describe code-analyzer
  pollux extensions describe code-analyzer --verify
  pollux extensions describe ./my-extension --json`,
		Args: console.OneArg("NAME or PATH"),
		RunE: func(_ *cobra.Command, args []string) error { return describe(kit, args[0], asJSON, verify) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	cmd.Flags().BoolVar(&verify, "verify", false, "say what changed since it was installed")
	return cmd
}

func describe(kit *tools.Kit, name string, asJSON, verify bool) error {
	var r describeReport
	var m *manifest.Manifest
	var unverified error
	if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
		if verify {
			return console.Usage(fmt.Errorf("--verify compares with what was installed; name an installed extension, not the path %q", name))
		}
		var err error
		if r, m, err = describeFolder(name); err != nil {
			return err
		}
	} else {
		s, x, err := kit.Find(name)
		if err != nil {
			return err
		}
		r, m = describeInstalled(x), x.Manifest
		r.Consent = kit.ConsentOf(x)
		if verify {
			v, err := s.Verify(x.Name)
			if err == nil {
				r.Verification = &v
			} else if unverified = err; r.Problem == "" { // an unreadable extension is described as well
				r.Problem = err.Error()
			}
		}
	}
	var err error
	if asJSON {
		err = kit.PrintJSON(r)
	} else {
		err = printDescription(kit, r, m)
	}
	if err == nil && unverified != nil {
		return fmt.Errorf("nothing can be compared: %w", unverified)
	}
	if err == nil && r.Verification != nil && !r.Verification.Same() {
		return console.Exit(console.CodeNo)
	}
	return err
}

// describeFolder describes an extension that need not be installed.
func describeFolder(path string) (describeReport, *manifest.Manifest, error) {
	dir, err := console.Here(path)
	if err != nil {
		return describeReport{}, nil, err
	}
	m, found, err := manifest.Load(dir)
	if err != nil {
		return describeReport{}, nil, console.No(err)
	}
	r := newDescribeReport(m, found)
	r.Path = dir
	if hash, err := manifest.HashTree(dir); err == nil {
		r.ContentHash = hash
	} else {
		r.Problem = err.Error()
	}
	if e := found.Err(); e != nil {
		r.Problem = e.Error()
	}
	return r, m, nil
}

func describeInstalled(x *store.Extension) describeReport {
	r := newDescribeReport(x.Manifest, x.Findings)
	r.Name, r.Path, r.Installed, r.ID = x.Name, x.Dir, true, x.ID()
	r.Problem, r.InstalledBy, r.Commit, r.Linked = x.Problem, x.InstalledBy(), x.Commit(), x.Linked()
	r.Enabled = &enabledReport{User: x.EnabledUser, Workspace: x.EnabledHere}
	if md := x.Metadata; md != nil {
		r.Source, r.SourceType, r.Ref, r.ReleaseTag = words.Address(md.Source), md.Type, md.Ref, md.ReleaseTag
		r.AutoUpdate = md.AutoUpdate
	}
	if src, err := x.Source(); err == nil && x.Metadata != nil {
		r.Subdir = src.Subdir
		if src.Kind == source.Archive { // the CLI has no word for it
			r.SourceType = string(src.Kind)
		}
	}
	if x.Record != nil && !x.Linked() && r.InstalledBy == "pollux" {
		r.ContentHash, r.InstalledAt = x.Record.Hash, x.Record.Installed.UTC().Format(time.RFC3339)
	} else if hash, err := manifest.HashTree(x.Dir); err == nil {
		r.ContentHash = hash
	}
	return r
}

// printDescription prints the report in the order of a decision about an extension: what it is, what it may do, what
// is wrong.
func printDescription(kit *tools.Kit, r describeReport, m *manifest.Manifest) error {
	var b strings.Builder
	mark := "✓"
	if r.Problem != "" || r.Enabled != nil && !r.Enabled.Workspace {
		mark = "✗"
	}
	fmt.Fprintf(&b, "%s %s (%s)\n", mark, console.Paint(kit.Out, console.Bold, words.Printable(r.Name)), words.Printable(r.Version))
	if r.Description != "" {
		fmt.Fprintf(&b, "  %s\n", words.Printable(r.Description))
	}
	b.WriteByte('\n')
	for _, l := range r.facts() {
		fmt.Fprintf(&b, "  %-14s%s\n", l[0]+":", words.Printable(l[1]))
	}
	for _, s := range capabilities(m) {
		section(kit, &b, s)
	}
	if r.Verification != nil {
		section(kit, &b, wordSection{Title: "Since it was installed", Lines: verificationWords(*r.Verification, r)})
	}
	if r.Problem != "" {
		section(kit, &b, wordSection{Title: "What keeps it from loading", Lines: []string{words.Printable(r.Problem)}})
	}
	if len(r.Findings) > 0 {
		var lines []string
		for _, f := range r.Findings {
			f.File = filepath.Base(f.File)
			lines = append(lines, f.String())
		}
		section(kit, &b, wordSection{Title: "Findings", Lines: lines})
	}
	_, err := kit.Out.Write([]byte(b.String()))
	return err
}

func section(kit *tools.Kit, b *strings.Builder, s wordSection) {
	fmt.Fprintf(b, "\n  %s\n", console.Paint(kit.Out, console.Bold, s.Title))
	for _, l := range s.Lines {
		fmt.Fprintf(b, "    %s\n", l)
	}
}

// facts returns the lines about the extension's place and source.
func (r describeReport) facts() [][2]string {
	var lines [][2]string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, [2]string{name, value})
		}
	}
	add("Path", r.Path)
	if !r.Installed {
		add("Installed", "no")
		add("Content hash", r.ContentHash)
		return lines
	}
	from := r.Source
	if r.Subdir != "" {
		from += ", folder " + r.Subdir
	}
	if from != "" {
		from += " (" + r.SourceType + ")"
	}
	add("Source", from)
	add("Ref", r.Ref)
	add("Release", r.ReleaseTag)
	add("Commit", r.Commit)
	add("Content hash", r.ContentHash)
	by := r.InstalledBy
	if at, err := time.Parse(time.RFC3339, r.InstalledAt); err == nil {
		by += ", " + at.Local().Format("2006-01-02 15:04")
	}
	add("Installed by", by)
	add("Enabled", r.Enabled.words())
	add("Consent", r.Consent.Words)
	add("ID", r.ID)
	return lines
}

func verificationWords(v store.Verification, r describeReport) []string {
	switch {
	case r.Linked:
		return []string{"it is linked to a folder under development, whose content may change at any time: nothing to compare"}
	case v.ByOther:
		return []string{"another program has replaced it since pollux installed it: nothing to compare"}
	case v.Recorded == "":
		return []string{"pollux did not install it, so that nothing was recorded to compare with; reinstall it with pollux to be able to"}
	case v.Same():
		return []string{"nothing changed"}
	}
	var lines []string
	for _, c := range []struct {
		what  string
		paths []string
	}{{"changed", v.Changed}, {"added", v.Added}, {"removed", v.Removed}} {
		for _, p := range c.paths {
			lines = append(lines, c.what+" "+words.Printable(p))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "the content changed; which files is not known")
	}
	return append(lines, "was "+v.Recorded, "is  "+v.Current)
}
