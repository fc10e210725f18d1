package ide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pollux-companion/pollux/plugins"
)

// A Machine is what determines where an editor looks for plugins.
type Machine struct {
	OS     string              // as runtime.GOOS
	Home   string              // absolute
	Getenv func(string) string // the user's environment
}

// errUnknown: pollux has no plugin for such an editor.
var errUnknown = errors.New("pollux has no plugin for it")

// Editors returns the editors that pollux has a plugin for, in the order of lists.
func Editors() []string { return []string{"neovim", "vim", "emacs", "micro", "kakoune"} }

// commandsOf returns the commands by which an editor of Editors is found in PATH.
func commandsOf(editor string) []string {
	switch editor {
	case "neovim":
		return []string{"nvim"}
	case "vim":
		return []string{"vim", "vim.basic", "gvim", "mvim"}
	case "emacs":
		return []string{"emacs"}
	case "micro":
		return []string{"micro"}
	case "kakoune":
		return []string{"kak"}
	}
	return nil
}

// join is filepath.Join for the machine's platform.
func (m Machine) join(parts ...string) string {
	if m.OS == "windows" {
		return strings.ReplaceAll(path.Join(strings.ReplaceAll(strings.Join(parts, "/"), `\`, "/")), "/", `\`)
	}
	return path.Join(parts...)
}

func (m Machine) exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// place returns the folder for an editor's plugin, absolute.
func (m Machine) place(editor string) (string, error) {
	switch editor {
	case "neovim":
		return m.neovim(), nil
	case "vim":
		if m.OS == "windows" {
			return m.join(m.Home, "vimfiles", "pack", "pollux", "start", "pollux"), nil
		}
		base := m.join(m.Home, ".vim")
		config := m.join(m.config(), "vim") // Vim 9.1.327 and later, unless an older folder exists
		if !m.exists(base) && !m.exists(m.join(m.Home, ".vimrc")) && m.exists(config) {
			base = config
		}
		return m.join(base, "pack", "pollux", "start", "pollux"), nil
	case "emacs":
		return m.join(m.emacs(), "elpa", "pollux-"+emacsVersion), nil
	case "micro":
		if dir := m.Getenv("MICRO_CONFIG_HOME"); dir != "" {
			return m.join(dir, "plug", "pollux"), nil
		}
		return m.join(m.config(), "micro", "plug", "pollux"), nil
	case "kakoune": // not its "autoload": where that exists, Kakoune reads none of its own scripts
		if dir := m.Getenv("KAKOUNE_CONFIG_DIR"); dir != "" {
			return m.join(dir, "pollux"), nil
		}
		return m.join(m.config(), "kak", "pollux"), nil
	}
	return "", fmt.Errorf("%q: %w; it has: %s", editor, errUnknown, strings.Join(Editors(), ", "))
}

func (m Machine) config() string {
	if dir := m.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return m.join(m.Home, ".config")
}

// neovim returns the "site" folder, because lazy.nvim keeps it but drops packages.
func (m Machine) neovim() string {
	app := m.Getenv("NVIM_APPNAME")
	if app == "" {
		app = "nvim"
	}
	data := m.Getenv("XDG_DATA_HOME")
	switch {
	case data != "" && m.OS == "windows":
		app += "-data"
	case data != "":
	case m.OS == "windows":
		app += "-data"
		if data = m.Getenv("LOCALAPPDATA"); data == "" {
			data = m.join(m.Home, "AppData", "Local")
		}
	default:
		data = m.join(m.Home, ".local", "share")
	}
	return m.join(data, app, "site")
}

func (m Machine) emacs() string {
	home := m.Home
	if m.OS == "windows" {
		if home = m.Getenv("HOME"); home == "" {
			if home = m.Getenv("APPDATA"); home == "" {
				home = m.join(m.Home, "AppData", "Roaming")
			}
		}
	}
	old := m.join(home, ".emacs.d")
	config := m.join(m.config(), "emacs")
	if !m.exists(old) && !m.exists(m.join(home, ".emacs")) && !m.exists(m.join(home, ".emacs.el")) && m.exists(config) {
		return config
	}
	return old
}

// emacsVersion is the plugin's version, which package.el expects in the folder's name.
const emacsVersion = "0.1.0"

// files returns the files of an editor's plugin, by slash-separated names: the plugin, and the absolute path of the pollux that
// it starts.
func files(editor, command string) (map[string][]byte, error) {
	files := map[string][]byte{}
	folder := map[string]string{"neovim": "nvim", "vim": "vim", "emacs": "emacs", "micro": "micro", "kakoune": "kakoune"}[editor]
	if folder == "" {
		return nil, fmt.Errorf("%q: %w", editor, errUnknown)
	}
	sub, err := fs.Sub(plugins.Files(), folder)
	if err == nil {
		err = fs.WalkDir(sub, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(sub, name)
			files[name] = data
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	command = filepath.Clean(command)
	switch editor {
	case "neovim":
		files = neovimFiles(files, command)
	case "vim":
		files["autoload/pollux/installed.vim"] = []byte("\" written by pollux install\nfunction! pollux#installed#command() abort\n  return '" + strings.ReplaceAll(command, "'", "''") + "'\nendfunction\n")
		files["doc/tags"] = helpTags(files["doc/pollux.txt"])
	case "micro":
		files["installed.lua"] = []byte("-- written by pollux install\ninstalled = " + luaString(command) + "\n")
	case "kakoune":
		files["installed.kak"] = []byte("# written by pollux install\nset-option global pollux_command '" + strings.ReplaceAll(command, "'", "''") + "'\n")
	case "emacs":
		delete(files, "README.md")
		files["pollux-pkg.el"] = []byte(`(define-package "pollux" "` + emacsVersion + "\" \"Gemini CLI in this editor\" '((emacs \"27.1\")))\n")
		files["pollux-autoloads.el"] = []byte(";;; pollux-autoloads.el --- written by pollux install  -*- lexical-binding: t; -*-\n" +
			"(add-to-list 'load-path (directory-file-name (or (file-name-directory #$) (car load-path))))\n" + autoloads(files) +
			"(setq pollux-command " + lispString(command) + ")\n" +
			"(add-hook 'emacs-startup-hook (lambda () (unless noninteractive (run-with-idle-timer 0.02 nil #'pollux-mode 1))))\n")
	}
	return files, nil
}

// neovimFiles puts the plugin into its own folder, because all plugins share the place's "doc" folder, and adds one
// line next to it that Neovim finds.
func neovimFiles(plugin map[string][]byte, command string) map[string][]byte {
	files := map[string][]byte{
		"plugin/pollux.lua": []byte("-- written by pollux install\nlocal place = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h')\n" +
			"vim.opt.runtimepath:append(place .. '/pollux')\nvim.cmd('source ' .. vim.fn.fnameescape(place .. '/pollux/plugin/pollux.lua'))\n"),
		"pollux/lua/pollux/installed.lua": []byte("-- written by pollux install\nreturn { command = " + luaString(command) + " }\n"),
		"pollux/doc/tags":                 helpTags(plugin["doc/pollux.txt"]),
	}
	for name, data := range plugin {
		files["pollux/"+name] = data
	}
	return files
}

func luaString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x00", "").Replace(s) + `"`
}

func lispString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// autoloads returns the forms of the Emacs functions that have an autoload cookie, as package.el would write them.
func autoloads(files map[string][]byte) string {
	var out strings.Builder
	for _, name := range sortedKeys(files) {
		lines := strings.Split(string(files[name]), "\n")
		for i, line := range lines[:len(lines)-1] {
			words := strings.Fields(lines[i+1])
			if feature, isLisp := strings.CutSuffix(name, ".el"); isLisp && line == ";;;###autoload" && len(words) > 1 {
				fmt.Fprintf(&out, "(autoload '%s \"%s\" nil t)\n", words[1], feature)
			}
		}
	}
	return out.String()
}

// helpTags returns Vim's index of a help file, as :helptags writes it.
func helpTags(help []byte) []byte {
	tags := map[string]bool{}
	for line := range strings.Lines(string(help)) {
		for word := range strings.FieldsSeq(line) {
			if len(word) > 2 && word[0] == '*' && word[len(word)-1] == '*' && !strings.Contains(word[1:len(word)-1], "*") {
				tags[word[1:len(word)-1]] = true
			}
		}
	}
	var out strings.Builder
	for _, tag := range sortedKeys(tags) {
		fmt.Fprintf(&out, "%s\tpollux.txt\t/*%s*\n", tag, tag)
	}
	return []byte(out.String())
}

// Here returns the machine that this program runs on.
func Here() (Machine, error) {
	home, err := os.UserHomeDir()
	return Machine{OS: runtime.GOOS, Home: home, Getenv: os.Getenv}, err
}
