package extensions

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

func searchCommand(kit *tools.Kit) *cobra.Command {
	var index string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "search WORDS",
		Short: "Search an index file of extensions",
		Long: `Searches an index: a JSON file with a list of {"name", "description", "version",
"source", "keywords"}, or a saved copy of Gemini CLI's gallery. The file is named
by --index, else by extensionIndex in pollux's configuration, else by Gemini CLI's
settings (experimental.extensionRegistryURI). The search uses no network. It finds
the extensions in which every word occurs.`,
		Example: `  pollux extensions search lint python --index ~/extensions.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			return searchIndex(kit, args, index, asJSON)
		},
	}
	cmd.Flags().StringVar(&index, "index", "", "the index file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func searchIndex(kit *tools.Kit, terms []string, index string, asJSON bool) error {
	s, err := kit.Store()
	if err != nil {
		return err
	}
	for _, file := range []string{kit.Settings.ExtensionIndex, s.IndexFile()} {
		if index == "" {
			index = file
		}
	}
	if index == "" {
		return console.Usage(errors.New("there is no index to search: name one with --index FILE, or set extensionIndex in the configuration"))
	}
	all, err := store.ReadIndex(index)
	if err != nil {
		return err
	}
	found := store.Search(all, strings.Fields(strings.Join(terms, " ")))
	if asJSON {
		return kit.PrintJSON(map[string][]store.IndexEntry{"extensions": append([]store.IndexEntry{}, found...)})
	}
	for _, e := range found {
		kit.Say("%s %s", e.Name, e.Version)
		if e.Description != "" {
			kit.Say("  %s", words.Shorten(e.Description, 100))
		}
		kit.Say("  pollux extensions install %s", e.Source)
	}
	if len(found) == 0 {
		return console.No(fmt.Errorf("no extension in %q has all of these words: %s", index, strings.Join(terms, " ")))
	}
	return nil
}

func exportCommand(kit *tools.Kit) *cobra.Command {
	var out string
	var force bool
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Pack an installed extension into a zip file for another machine",
		Long: `Writes an extension's content into a zip file that install takes, for machines
without a network. The same content gives the same bytes everywhere. Your
settings, git's folder and caches are not in it.`,
		Example: `  pollux extensions export code-analyzer -o code-analyzer.zip`,
		Args:    console.OneArg("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, x, err := kit.Find(args[0])
			if err != nil {
				return tools.Coded(err)
			}
			if out == "" {
				out = x.Name + "-" + strings.Map(fileSafe, x.Manifest.Version) + ".zip"
			}
			path, err := filepath.Abs(out)
			if err != nil {
				return err
			}
			hash, err := s.Export(x, path, force)
			if err != nil {
				return tools.Coded(err)
			}
			kit.Say("%s  %s", path, hash)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write (NAME-VERSION.zip)")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return cmd
}

// fileSafe prevents a version from naming another folder.
func fileSafe(r rune) rune {
	if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
		return '_'
	}
	return r
}
