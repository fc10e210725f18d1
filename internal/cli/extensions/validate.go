package extensions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

func validateCommand(kit *tools.Kit) *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "validate [PATH]",
		Short: "Check an extension's manifest and the files that it names",
		Long: `Checks the extension in PATH (or the current folder): the manifest's text, every
field, and that the named files exist inside the extension. It reports all faults
at once, each with file, line, column and the fix.

The exit code is 0 without errors, 1 with errors (with --strict: or warnings).`,
		Example: `  pollux extensions validate
  pollux extensions validate ./my-extension --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return validate(kit, console.DirOf(args), asJSON, strict) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	cmd.Flags().BoolVar(&strict, "strict", false, "take warnings for errors")
	return cmd
}

// validateReport is the output of validate --json.
type validateReport struct {
	Path     string            `json:"path"`
	Name     string            `json:"name" jsonschema:"the extension's name, empty when it could not be read"`
	Version  string            `json:"version"`
	Valid    bool              `json:"valid" jsonschema:"whether there are no errors"`
	Errors   int               `json:"errors"`
	Warnings int               `json:"warnings"`
	Notes    int               `json:"notes"`
	Findings manifest.Findings `json:"findings"`
}

func validate(kit *tools.Kit, path string, asJSON, strict bool) error {
	dir := path
	if filepath.Base(path) == manifest.FileName {
		dir = filepath.Dir(path)
	}
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("no extension at %q: %w", path, safefile.Cause(err))
	} else if !info.IsDir() {
		return console.Usage(fmt.Errorf("%q is a file; name the extension's folder", path))
	}
	load := manifest.Load
	if s, err := kit.Store(); err == nil && s.IsBridge(dir) {
		load = manifest.LoadOwn
	}
	m, found, err := load(dir)
	if err != nil {
		m, found = &manifest.Manifest{}, manifest.Findings{unreadable(dir, err)}
	}
	found = append(found, validateFiles(kit, dir, m)...)
	r := validateReport{
		Path: dir, Name: m.Name, Version: m.Version, Findings: found,
		Errors: found.Count(manifest.Error), Warnings: found.Count(manifest.Warning), Notes: found.Count(manifest.Note),
	}
	r.Valid = r.Errors == 0
	if r.Findings == nil {
		r.Findings = manifest.Findings{}
	}
	if asJSON {
		err = kit.PrintJSON(r)
	} else {
		err = printReport(kit, r)
	}
	if err == nil && (!r.Valid || strict && r.Warnings > 0) {
		return console.Exit(console.CodeNo)
	}
	return err
}

// validateFiles checks the files beside the manifest: files that an install would refuse, files that Gemini CLI would
// skip, and scripts that no runtime can parse.
func validateFiles(kit *tools.Kit, dir string, m *manifest.Manifest) manifest.Findings {
	var found manifest.Findings
	troubles, err := source.CheckFolder(dir, nil)
	if err != nil {
		return manifest.Findings{{Severity: manifest.Error, File: dir, Message: safefile.Cause(err).Error(), Fix: "make it readable"}}
	}
	for _, t := range troubles {
		f := manifest.Finding{Severity: manifest.Warning, File: filepath.Join(dir, filepath.FromSlash(t.Entry)), Message: "it " + t.Why, Fix: "correct or remove it"}
		if t.Refused {
			f.Severity, f.Fix = manifest.Error, "remove it; the extension cannot be installed with it"
		}
		if t.Entry == "" {
			f.Message, f.Fix = t.Why, "the extension cannot be installed as it is"
		}
		found = append(found, f)
	}
	if found.Err() != nil {
		return found // it would only repeat the findings
	}
	more, err := manifest.Content(dir)
	if err != nil {
		return append(found, manifest.Finding{Severity: manifest.Error, File: dir, Message: safefile.Cause(err).Error(), Fix: "make it readable"})
	}
	ctx, cancel := context.WithTimeout(context.Background(), syntaxTime)
	defer cancel()
	return append(append(found, more...), runner.CheckScripts(ctx, kit.Sandbox(kit.Settings.Tools.Reduced), dir, m)...)
}

// syntaxTime bounds the check of all scripts together.
const syntaxTime = 20 * time.Second

// unreadable returns the finding for a manifest that Load could not read.
func unreadable(dir string, err error) manifest.Finding {
	f := manifest.Finding{Severity: manifest.Error, File: filepath.Join(dir, manifest.FileName), Message: err.Error()}
	if errors.Is(err, fs.ErrNotExist) {
		f.Message, f.Fix = "there is no manifest", `create it with {"name": "…", "version": "1.0.0"}, or see pollux extensions new`
	}
	return f
}

func printReport(kit *tools.Kit, r validateReport) error {
	for _, f := range r.Findings {
		fmt.Fprintln(kit.Out, f)
	}
	name := words.Printable(r.Name)
	if name == "" {
		name = r.Path
	}
	if r.Valid && r.Warnings == 0 {
		_, err := fmt.Fprintf(kit.Out, "%s %s is valid\n", name, words.Printable(r.Version))
		return err
	}
	word := "is valid"
	if !r.Valid {
		word = "is not valid"
	}
	_, err := fmt.Fprintf(kit.Out, "%s %s: %s, %s\n", name, word, count(r.Errors, "error"), count(r.Warnings, "warning"))
	return err
}

// count returns "1 error", "2 errors".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
