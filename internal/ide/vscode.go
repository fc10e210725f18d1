package ide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Extension is pollux's extension for VS Code and its forks, by the name under
// which they know it. They install it themselves, from a file that pollux makes.
const Extension = "pollux.pollux"

// forks are VS Code and its forks by the name of their command.
func forks() map[string]string {
	return map[string]string{
		"vscode": "code", "vscode-insiders": "code-insiders", "vscodium": "codium", "cursor": "cursor", "windsurf": "windsurf",
		"positron": "positron", "trae": "trae", "antigravity": "agy", "code-server": "code-server",
		"theia": "theia",
	}
}

// Forks are the names under which Fork takes VS Code and its forks.
func Forks() []string { return sortedKeys(forks()) }

// errNoCommand: an editor's own command is not where it usually is.
var errNoCommand = errors.New("its command was not found")

// Fork finds the command of VS Code or a fork, in PATH (find, as exec.LookPath
// does) or in the usual places; ok is false when editor is none of Forks.
func (m Machine) Fork(editor string, find func(string) (string, error)) (command string, ok bool, err error) {
	name := forks()[editor]
	if name == "" {
		return "", false, nil
	}
	if path, err := find(name); err == nil {
		return path, true, nil
	}
	for _, place := range m.forkPlaces(name) {
		if m.exists(place) {
			return place, true, nil
		}
	}
	return "", true, fmt.Errorf("%s: %w (%s); open the editor, run \"Shell Command: Install '%s' command in PATH\" from its palette if it has that, and try again", editor, errNoCommand, name, name)
}

func (m Machine) forkPlaces(name string) []string {
	app := map[string]string{
		"code": "Visual Studio Code", "code-insiders": "Visual Studio Code - Insiders", "codium": "VSCodium", "cursor": "Cursor",
		"windsurf": "Windsurf", "positron": "Positron", "trae": "Trae", "agy": "Antigravity", "theia": "TheiaIDE",
	}[name]
	switch m.OS {
	case "darwin":
		inside := m.join(app+".app", "Contents", "Resources", "app", "bin", name)
		return []string{m.join("/Applications", inside), m.join(m.Home, "Applications", inside)}
	case "windows":
		folder := map[string]string{"code": "Microsoft VS Code", "code-insiders": "Microsoft VS Code Insiders"}[name]
		if folder == "" {
			folder = app
		}
		return []string{
			m.join(m.Getenv("LOCALAPPDATA"), "Programs", folder, "bin", name+".cmd"),
			m.join(m.Getenv("ProgramFiles"), folder, "bin", name+".cmd"),
		}
	}
	return []string{m.join("/usr/share", name, "bin", name), m.join("/snap/bin", name), m.join("/var/lib/flatpak/exports/bin", name), m.join(m.Home, ".local", "bin", name)}
}

// installWithin bounds how long an editor may take to fetch an extension.
const installWithin = 5 * time.Minute

// InstallExtension has an editor of VS Code's family, by its own command,
// install Extension, which will start i.Command. The error has the editor's
// own last words.
func (i *Installer) InstallExtension(ctx context.Context, editor string) error {
	dir, err := os.MkdirTemp("", "pollux-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pollux.vsix")
	if err := i.WriteExtension(file); err != nil {
		return err
	}
	return runFork(ctx, editor, "--install-extension", file, "--force")
}

// WriteExtension writes Extension as a file that a user can install in the editor.
func (i *Installer) WriteExtension(file string) error {
	return writeVSIX(file, i.Version, i.Command)
}

// RemoveExtension has it remove Extension.
func RemoveExtension(ctx context.Context, editor string) error {
	return runFork(ctx, editor, "--uninstall-extension", Extension)
}

func runFork(ctx context.Context, editor string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, editor, args...)
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", editor, strings.Join(args, " "), errors.Join(err, ctx.Err()), lastWords(out))
	}
	return nil
}

// lastWords are the end of what a program has printed, without what a terminal would obey.
func lastWords(out []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.TrimSpace(strings.ToValidUTF8(string(out[max(0, len(out)-2000):]), "")))
}

// Snippet is what a user adds to the settings of an editor that pollux does
// not write into, and where; ok is false for one that needs none.
func Snippet(editor, command string) (where, text string, ok bool) {
	quoted := lispString(command)
	switch editor {
	case "helix":
		return "~/.config/helix/languages.toml", "[language-server.pollux]\ncommand = " + quoted + "\nargs = [\"lsp\"]\n\n" +
			"# and for each language that you use, with its own servers first:\n[[language]]\nname = \"go\"\nlanguage-servers = [\"gopls\", \"pollux\"]\n", true
	case "kate":
		return "Settings, LSP Client, User Server Settings", "{\n  \"servers\": {\n    \"pollux\": {\n      \"command\": [" + quoted + ", \"lsp\"],\n      \"root\": \"%{Project:NativePath}\",\n      \"highlightingModeRegex\": \"^(Markdown|Normal)$\"\n    }\n  }\n}\n", true
	case "zed":
		return "an extension that names the server \"pollux\", and settings.json", "{\n  \"lsp\": {\"pollux\": {\"binary\": {\"path\": " + quoted + ", \"arguments\": [\"lsp\"]}}},\n  \"terminal\": {\"env\": {}}\n}\n", true
	case "jetbrains":
		return "the plugin LSP4IJ: Languages & Frameworks, Language Servers, +", "Name: pollux\nCommand: " + quoted + " lsp\nMappings: File name patterns, *\n", true
	case "sublime":
		return "Preferences, Package Settings, LSP, Settings", "{\n  \"clients\": {\n    \"pollux\": {\"enabled\": true, \"command\": [" + quoted + ", \"lsp\"], \"selector\": \"source | text\"}\n  }\n}\n", true
	}
	return "", "", false
}

// Snippets are the editors that Snippet knows.
func Snippets() []string {
	return []string{"helix", "jetbrains", "kate", "sublime", "zed"}
}
