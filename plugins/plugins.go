// Package plugins holds pollux's plugins for editors, each in its editor's own
// layout, as an installer writes them and as plugin managers find them.
package plugins

import (
	"embed"
	"io/fs"
)

//go:embed emacs kakoune micro nvim vim
//go:embed vscode/package.json vscode/README.md vscode/dist/extension.js
var files embed.FS

// Files are the plugins, a folder for each editor: emacs, kakoune, micro, nvim, vim, vscode.
func Files() fs.FS { return files }
