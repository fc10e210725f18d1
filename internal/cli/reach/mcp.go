package reach

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/idetools"
)

// EditorTools gives an MCP server the tools of the editor that a companion serves a folder to. With write, openDiff writes what the
// user accepted.
func EditorTools(con *console.Console) func(s *mcp.Server, folder string, write bool) {
	return func(s *mcp.Server, folder string, write bool) {
		idetools.Add(s, idetools.Options{Dirs: con.Dirs.Run, Folder: folder, Write: write})
	}
}
