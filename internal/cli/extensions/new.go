package extensions

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/scaffold"
)

func newCommand(kit *tools.Kit) *cobra.Command {
	var template, name string
	cmd := &cobra.Command{
		Use:   "new PATH",
		Short: "Begin an extension from a template",
		Long: `Writes the first files of an extension into PATH, a folder that does not exist
yet or is empty. They are valid and run as they are.`,
		Example: `  pollux extensions new ./my-extension
  pollux extensions new ./my-server --template mcp-server`,
		Args: console.OneArg("PATH"),
		RunE: func(_ *cobra.Command, args []string) error { return newExtension(kit, args[0], template, name) },
	}
	cmd.Flags().StringVar(&template, "template", scaffold.Default, "the `TEMPLATE` to begin with")
	cmd.Flags().StringVar(&name, "name", "", "the extension's `NAME` (default: the last part of PATH)")
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long += "\n\nTemplates:\n" + templateList()
		cmd.Parent().HelpFunc()(cmd, args)
	})
	_ = cmd.RegisterFlagCompletionFunc("template", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, t := range scaffold.Templates() {
			names = append(names, t.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// templateList returns the templates with their summaries, one per line.
func templateList() string {
	var lines []string
	templates := scaffold.Templates()
	width := 0
	for _, t := range templates {
		width = max(width, len(t.Name))
	}
	for _, t := range templates {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, t.Name, t.Summary))
	}
	return strings.Join(lines, "\n")
}

func newExtension(kit *tools.Kit, path, template, name string) error {
	if path == "" {
		return console.Usage(errors.New("PATH is empty; name the folder for the new extension"))
	}
	written, err := scaffold.New(path, template, name)
	for _, f := range written {
		fmt.Fprintln(kit.Out, filepath.Join(path, filepath.FromSlash(f)))
	}
	if errors.Is(err, scaffold.ErrTemplate) || errors.Is(err, manifest.ErrName) {
		return console.Usage(err)
	}
	if err == nil {
		fmt.Fprintf(kit.Err, "Try it: pollux extensions link %s\n", path)
	}
	return err
}

func schemaCommand(kit *tools.Kit) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of gemini-extension.json",
		Long: `Prints the JSON Schema of gemini-extension.json. Editors complete and check
manifests with it. pollux extensions validate also checks what no schema can say.`,
		Example: `  pollux extensions schema > gemini-extension.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := kit.Out.Write(manifest.Schema())
			return err
		},
	}
}
