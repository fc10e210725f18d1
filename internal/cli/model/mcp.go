package model

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
)

// MCP makes pollux mcp; ide adds the editor's tools.
func MCP(kit *tools.Kit, ide func(s *mcp.Server, folder string, write bool)) *cobra.Command {
	var withIDE, write bool
	var budget int
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve extensions, and the editor, to any MCP client over stdio",
		Long: `Serves the extensions that are enabled in this folder and that you agreed to as
an MCP server on standard input and output: tools (each in its sandbox),
documents as resources, examples as prompts, and the summary as instructions.
If your consent is still needed, the client asks you, where it can. If there are
many tools, only some are declared; one function describes the others and another
runs them.

With --ide the client also gets tools for the editor that is connected to this
folder: getDiagnostics, getOpenEditors, getCurrentSelection, openFile, openDiff
and more, under the names that other IDE servers use. They change no file. With
--ide-write, openDiff writes the text that you accepted.

Gemini CLI wants the bridge instead: pollux extensions bridge install.`,
		Example: `  claude mcp add pollux -- pollux mcp --ide
  {"mcpServers": {"pollux": {"command": "pollux", "args": ["mcp", "--ide"]}}}`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := mcpOptions(kit, budget)
			if withIDE || write {
				dir, err := console.Here(".")
				if err != nil {
					return err
				}
				o.Extend = func(s *mcp.Server) { ide(s, dir, write) }
			}
			(&troubleTeller{kit: kit}).note()
			return serve(cmd.Context(), kit, "an MCP client", &ask.Editor{Dirs: kit.Dirs.Run}, o)
		},
	}
	cmd.Flags().BoolVar(&withIDE, "ide", false, "offer the editor's tools, too")
	cmd.Flags().BoolVar(&write, "ide-write", false, "offer them, and let openDiff write what you accepted")
	cmd.Flags().IntVar(&budget, "budget", bridge.Budget, "the most `TOKENS` of the instructions; 0 bounds neither them nor the tools")
	return cmd
}
