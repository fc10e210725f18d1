package extensions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// configFlags are the flags of config.
type configFlags struct {
	scope  string
	unset  bool
	asJSON bool
}

func configCommand(kit *tools.Kit) *cobra.Command {
	var f configFlags
	cmd := &cobra.Command{
		Use:   "config NAME [SETTING] [VALUE]",
		Short: "Show and set an extension's settings",
		Long: `Shows the settings that an extension asks for, or sets one. Gemini CLI reads the
same settings. A secret goes into the system's keychain, or into the CLI's
encrypted file if there is no keychain. It is never printed, and never an
argument, because other programs could see it: give - as VALUE, and type the
secret or pass it on standard input.`,
		Example: `  pollux extensions config my-extension
  pollux extensions config my-extension REGION eu-west-1
  pollux extensions config my-extension API_KEY - < key.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 3 {
				return console.Usage(fmt.Errorf("%s takes NAME [SETTING] [VALUE]; see %s --help", cmd.CommandPath(), cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return tools.Coded(configure(kit, cmd, args, &f))
		},
	}
	cmd.Flags().StringVar(&f.scope, "scope", "user", "for whom a value is set: user or workspace")
	cmd.Flags().BoolVar(&f.unset, "unset", false, "remove the setting's value")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func configure(kit *tools.Kit, cmd *cobra.Command, args []string, f *configFlags) error {
	scope, err := scopeOf(f.scope)
	if err != nil {
		return err
	}
	s, x, err := kit.Find(args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if f.unset {
			return console.Usage(errors.New("--unset needs the name of a setting"))
		}
		return showValues(kit, s, x, "", f.asJSON)
	}
	setting, err := findSetting(x, args[1])
	if err != nil {
		return console.No(err)
	}
	if len(args) == 2 && !f.unset {
		return showValues(kit, s, x, setting.EnvVar, f.asJSON)
	}
	ctx, stop := cancellable(cmd)
	defer stop()
	if err := tools.NotByAgent(ctx, kit, "changing a setting"); err != nil {
		return err
	}
	var value *string
	if !f.unset {
		text, err := settingValue(ctx, kit, setting, args[2])
		if err != nil {
			return err
		}
		value = &text
	}
	place, err := s.SetValue(ctx, x, setting, scope, value)
	if err != nil {
		return err
	}
	verb := "set"
	if value == nil || *value == "" {
		verb = "removed"
	}
	kit.Say("%s %s of %s in %s", verb, setting.Name, x.Name, place)
	return nil
}

// findSetting finds a setting by its name or its environment variable.
func findSetting(x *store.Extension, name string) (manifest.Setting, error) {
	var names []string
	for _, s := range x.Manifest.Settings {
		if s.Name == name || strings.EqualFold(s.EnvVar, name) {
			return s, nil
		}
		names = append(names, s.EnvVar)
	}
	if len(names) == 0 {
		return manifest.Setting{}, fmt.Errorf("%s has no settings", x.Name)
	}
	if near := words.Nearest(name, names); len(near) > 0 {
		return manifest.Setting{}, fmt.Errorf("%s has no setting %q; did you mean %q?", x.Name, name, near[0])
	}
	return manifest.Setting{}, fmt.Errorf("%s has no setting %q; it has %s", x.Name, name, strings.Join(names, ", "))
}

// settingValue returns the new value: the argument, or for "-" what is typed or piped in.
func settingValue(ctx context.Context, kit *tools.Kit, s manifest.Setting, arg string) (string, error) {
	if arg != "-" {
		if s.Sensitive {
			return "", console.Usage(fmt.Errorf("%s is a secret, and other programs can see arguments; write - instead of the value, and type it or pipe it in", s.Name))
		}
		return arg, nil
	}
	in := console.Terminal(kit.In)
	if in == nil {
		return pipedValue(ctx, kit.In)
	}
	fmt.Fprintf(kit.Err, "%s: ", words.Printable(s.Name))
	if !s.Sensitive {
		line, err := ask.ReadLine(ctx, in)
		return strings.TrimRight(line, "\r\n"), err
	}
	return readSecret(ctx, in, kit.Err)
}

// pipedValue returns all of standard input, without the line break at its end.
func pipedValue(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, store.MaxValue+3)) // for a line break, and one byte too many
		done <- result{data, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx) // the read ends with the process
	case r := <-done:
		text := strings.TrimSuffix(strings.TrimSuffix(string(r.data), "\n"), "\r")
		switch {
		case r.err != nil:
			return "", fmt.Errorf("reading the value from standard input: %w", r.err)
		case text == "":
			return "", errors.New("no value on standard input; pipe one in, or remove the setting with --unset")
		}
		return text, nil
	}
}

// readSecret reads a line without echo. Ctrl-C ends it and restores the terminal.
func readSecret(ctx context.Context, in *os.File, stderr io.Writer) (string, error) {
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", err
	}
	defer fmt.Fprintln(stderr)
	type result struct {
		secret []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		secret, err := term.ReadPassword(int(in.Fd()))
		done <- result{secret, err}
	}()
	select {
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(int(in.Fd()), before))
	case r := <-done:
		return string(r.secret), r.err
	}
}

// valueJSON is one setting of `config --json`.
type valueJSON struct {
	Name        string  `json:"name"`
	EnvVar      string  `json:"envVar"`
	Description string  `json:"description,omitempty"`
	Sensitive   bool    `json:"sensitive"`
	Set         bool    `json:"set"`
	Value       *string `json:"value,omitempty"` // absent for a secret
	Scope       string  `json:"scope,omitempty"`
	Place       string  `json:"place,omitempty"`
}

func showValues(kit *tools.Kit, s *store.Store, x *store.Extension, only string, asJSON bool) error {
	values, err := s.Values(x)
	if err != nil {
		return err
	}
	out := []valueJSON{}
	for _, v := range values {
		if only != "" && v.Setting.EnvVar != only {
			continue
		}
		j := valueJSON{
			Name: v.Setting.Name, EnvVar: v.Setting.EnvVar, Description: v.Setting.Description, Sensitive: v.Setting.Sensitive,
			Set: v.Set, Scope: string(v.Scope), Place: v.Place,
		}
		if v.Set && !v.Setting.Sensitive {
			j.Value = &v.Text
		}
		out = append(out, j)
	}
	if asJSON {
		return kit.PrintJSON(map[string][]valueJSON{"settings": out})
	}
	if len(values) == 0 {
		kit.Say("%s has no settings", x.Name)
	}
	for _, j := range out {
		switch {
		case !j.Set:
			kit.Say("%s (%s): not set", j.Name, j.EnvVar)
		case j.Sensitive:
			kit.Say("%s (%s): *** (%s, %s)", j.Name, j.EnvVar, j.Scope, j.Place)
		default:
			kit.Say("%s (%s): %s (%s)", j.Name, j.EnvVar, *j.Value, j.Scope)
		}
	}
	return nil
}
