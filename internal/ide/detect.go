// Package ide recognises the IDE around a terminal, and installs pollux's plugins into editors. It records the hashes
// of the files it writes, and removes only files that are unchanged (SPEC I-1 to I-3).
package ide

import (
	"path"
	"strings"
)

// A Finding names the IDE around a terminal.
type Finding struct {
	Name        string `json:"name"`        // as in ideInfo
	DisplayName string `json:"displayName"` // for people
	Why         string `json:"why"`         // the variable or process that gave it away
}

// A mark is one line of table I-1; the first match decides.
type mark struct {
	name, display string
	variable      string
	fits          func(value string) bool
}

func is(want string) func(string) bool { return func(value string) bool { return value == want } }

func set(value string) bool { return value != "" }

func contains(part string) func(string) bool {
	return func(value string) bool { return strings.Contains(strings.ToLower(value), part) }
}

// marks returns the marks in order of precedence: editors inside a terminal first, because they inherit the variables
// of the terminal around them.
func marks() []mark {
	return []mark{
		{"neovim", "Neovim", "NVIM", set},
		{"vim", "Vim", "VIM_TERMINAL", set},
		{"emacs", "Emacs", "INSIDE_EMACS", set},
		{"kakoune", "Kakoune", "kak_session", set},
		{"antigravity", "Antigravity", "ANTIGRAVITY_CLI_ALIAS", set},
		{"devin", "Devin", "__COG_BASHRC_SOURCED", set},
		{"replit", "Replit", "REPLIT_USER", set},
		{"cursor", "Cursor", "CURSOR_TRACE_ID", set},
		{"codespaces", "GitHub Codespaces", "CODESPACES", set},
		{"cloudshell", "Cloud Shell", "EDITOR_IN_CLOUD_SHELL", set},
		{"cloudshell", "Cloud Shell", "CLOUD_SHELL", set},
		{"trae", "Trae", "TERM_PRODUCT", is("Trae")},
		{"firebasestudio", "Firebase Studio", "MONOSPACE_ENV", set},
		{"positron", "Positron", "POSITRON", is("1")},
		{"sublimetext", "Sublime Text", "TERM_PROGRAM", is("sublime")},
		{"zed", "Zed", "ZED_SESSION_ID", set},
		{"zed", "Zed", "TERM_PROGRAM", is("Zed")},
		{"xcode", "Xcode", "XCODE_VERSION_ACTUAL", set},
		{"jetbrains", "JetBrains", "TERMINAL_EMULATOR", contains("jetbrains")},
		{"vscode", "VS Code", "TERM_PROGRAM", is("vscode")},
	}
}

// products distinguishes members of a family by the command of a process above the shell.
func products() [][3]string { // part of the command, name, display name
	return [][3]string{
		{"idea", "intellijidea", "IntelliJ IDEA"}, {"webstorm", "webstorm", "WebStorm"}, {"pycharm", "pycharm", "PyCharm"},
		{"goland", "goland", "GoLand"}, {"clion", "clion", "CLion"}, {"rustrover", "rustrover", "RustRover"},
		{"datagrip", "datagrip", "DataGrip"}, {"phpstorm", "phpstorm", "PhpStorm"}, {"rubymine", "rubymine", "RubyMine"},
		{"rider", "rider", "Rider"}, {"studio", "androidstudio", "Android Studio"},
	}
}

// programs are recognised by their process alone, when no variable names them.
func programs() map[string][2]string {
	return map[string][2]string{
		"nvim": {"neovim", "Neovim"}, "vim": {"vim", "Vim"}, "gvim": {"vim", "Vim"}, "emacs": {"emacs", "Emacs"},
		"hx": {"helix", "Helix"}, "helix": {"helix", "Helix"}, "kak": {"kakoune", "Kakoune"}, "micro": {"micro", "micro"}, "kate": {"kate", "Kate"},
		"code": {"vscode", "VS Code"}, "zed-editor": {"zed", "Zed"}, "sublime_text": {"sublimetext", "Sublime Text"},
	}
}

// Detect names the IDE around a terminal, from its environment or else from the commands of the processes above it,
// nearest first (SPEC I-2). ok is false when nothing matches.
func Detect(getenv func(string) string, commands []string) (f Finding, ok bool) {
	for _, m := range marks() {
		if value := getenv(m.variable); m.fits(value) {
			f := Finding{m.name, m.display, "the variable " + m.variable}
			return member(f, commands), true
		}
	}
	for _, command := range commands {
		base := strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/"))), ".exe")
		base, _, _ = strings.Cut(base, "-nox") // emacs-nox, emacs-gtk
		base = strings.TrimSuffix(strings.TrimSuffix(base, ".basic"), "-gtk")
		if p, found := programs()[base]; found {
			return Finding{p[0], p[1], "the process " + command}, true
		}
	}
	return Finding{}, false
}

// member finds the member of a family of IDEs.
func member(f Finding, commands []string) Finding {
	switch f.Name {
	case "jetbrains":
		for _, command := range commands {
			for _, p := range products() {
				if strings.Contains(strings.ToLower(command), p[0]) {
					return Finding{p[1], p[2], f.Why + " and the process " + command}
				}
			}
		}
	case "vscode":
		for _, command := range commands {
			lower := strings.ToLower(command)
			if strings.Contains(lower, "code") && !strings.Contains(lower, "codium") {
				return f
			}
			for _, fork := range []string{"codium", "windsurf", "antigravity", "cursor", "electron"} {
				if strings.Contains(lower, fork) {
					return Finding{"vscodefork", "IDE", f.Why + " and the process " + command}
				}
			}
		}
	}
	return f
}
