package reach

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/idetools"
)

// EditorTools adds to an MCP server the tools of the editor that serves a folder. With write, openDiff writes what
// the user accepted.
func EditorTools(con *console.Console) func(s *mcp.Server, folder string, write bool) {
	return func(s *mcp.Server, folder string, write bool) {
		idetools.Add(s, idetools.Options{Dirs: con.Dirs.Run, Folder: folder, Write: write})
	}
}
