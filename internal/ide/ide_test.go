package ide

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SPEC I-1, I-2: every entry of the table, by environment and by process.
func TestDetect(t *testing.T) {
	for _, tt := range []struct {
		env      string
		commands []string
		want     string
	}{
		{"NVIM=/run/x", nil, "neovim"}, {"VIM_TERMINAL=900", nil, "vim"}, {"INSIDE_EMACS=28.2,term:0.96", nil, "emacs"}, {"kak_session=1", nil, "kakoune"},
		{"ANTIGRAVITY_CLI_ALIAS=agy", nil, "antigravity"}, {"__COG_BASHRC_SOURCED=1", nil, "devin"}, {"REPLIT_USER=x", nil, "replit"},
		{"CURSOR_TRACE_ID=x", nil, "cursor"}, {"CODESPACES=true", nil, "codespaces"}, {"EDITOR_IN_CLOUD_SHELL=true", nil, "cloudshell"}, {"CLOUD_SHELL=true", nil, "cloudshell"},
		{"TERM_PRODUCT=Trae", nil, "trae"}, {"TERM_PRODUCT=x", nil, ""}, {"MONOSPACE_ENV=1", nil, "firebasestudio"}, {"POSITRON=1", nil, "positron"}, {"POSITRON=0", nil, ""},
		{"TERM_PROGRAM=sublime", nil, "sublimetext"}, {"ZED_SESSION_ID=1", nil, "zed"}, {"TERM_PROGRAM=Zed", nil, "zed"}, {"XCODE_VERSION_ACTUAL=1500", nil, "xcode"},
		{"TERMINAL_EMULATOR=JetBrains-JediTerm", nil, "jetbrains"},
		{"TERMINAL_EMULATOR=JetBrains-JediTerm", []string{"bash", "/opt/GoLand/bin/goland"}, "goland"},
		{"TERMINAL_EMULATOR=JetBrains-JediTerm", []string{"/opt/idea/bin/idea.sh"}, "intellijidea"},
		{"TERM_PROGRAM=vscode", nil, "vscode"}, {"TERM_PROGRAM=vscode", []string{"/usr/share/code/code"}, "vscode"}, {"TERM_PROGRAM=vscode", []string{"codium"}, "vscodefork"},
		{"TERM_PROGRAM=vscode NVIM=x", nil, "neovim"}, // the inner one
		{"", []string{"bash", "/usr/bin/nvim"}, "neovim"}, {"", []string{"vim.basic"}, "vim"}, {"", []string{"emacs-nox"}, "emacs"}, {"", []string{"emacs-gtk"}, "emacs"},
		{"", []string{"hx"}, "helix"}, {"", []string{"kak"}, "kakoune"}, {"", []string{"micro"}, "micro"}, {"", []string{"kate"}, "kate"}, {"", []string{`C:\x\Code.exe`}, "vscode"},
		{"", []string{"bash", "tmux", "systemd"}, ""}, {"", nil, ""},
	} {
		f, ok := Detect(func(name string) string {
			for pair := range strings.FieldsSeq(tt.env) {
				if k, v, _ := strings.Cut(pair, "="); k == name {
					return v
				}
			}
			return ""
		}, tt.commands)
		if f.Name != tt.want || ok != (tt.want != "") || ok && (f.DisplayName == "" || f.Why == "") {
			t.Errorf("%q %v: %+v, %v", tt.env, tt.commands, f, ok)
		}
	}
}

// SPEC I-3: the plugin folders on each platform.
func TestPlace(t *testing.T) {
	home := t.TempDir()
	for _, tt := range []struct {
		os, editor, env, want string
		make                  string
	}{
		{"linux", "neovim", "", home + "/.local/share/nvim/site", ""},
		{"darwin", "neovim", "", home + "/.local/share/nvim/site", ""},
		{"linux", "neovim", "XDG_DATA_HOME=/d NVIM_APPNAME=mine", "/d/mine/site", ""},
		{"windows", "neovim", `LOCALAPPDATA=C:\L`, `C:\L\nvim-data\site`, ""},
		{"linux", "vim", "", home + "/.vim/pack/pollux/start/pollux", ""},
		{"windows", "vim", "", strings.ReplaceAll(home, "/", `\`) + `\vimfiles\pack\pollux\start\pollux`, ""},
		{"linux", "emacs", "", home + "/.emacs.d/elpa/pollux-0.1.0", ""},
		{"windows", "emacs", `APPDATA=C:\A`, `C:\A\.emacs.d\elpa\pollux-0.1.0`, ""},
		{"linux", "emacs", "", home + "/.config/emacs/elpa/pollux-0.1.0", ".config/emacs"},
		{"linux", "vim", "", home + "/.config/vim/pack/pollux/start/pollux", ".config/vim"},
		{"linux", "emacs", "", home + "/.emacs.d/elpa/pollux-0.1.0", ".emacs.d"},
	} {
		if tt.make != "" {
			if err := os.MkdirAll(filepath.Join(home, tt.make), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		m := Machine{OS: tt.os, Home: home, Getenv: func(name string) string {
			for pair := range strings.FieldsSeq(tt.env) {
				if k, v, _ := strings.Cut(pair, "="); k == name {
					return v
				}
			}
			return ""
		}}
		if got, err := m.place(tt.editor); err != nil || got != tt.want {
			t.Errorf("%s %s %q: %q, %v; want %q", tt.os, tt.editor, tt.env, got, err, tt.want)
		}
	}
	if _, err := (Machine{}).place("ed"); !errors.Is(err, errUnknown) {
		t.Error(err)
	}
}

func installer(t *testing.T) *Installer {
	home := t.TempDir()
	return &Installer{
		Machine: Machine{OS: "linux", Home: home, Getenv: func(string) string { return "" }},
		Record:  filepath.Join(home, "state", "installed.json"), Command: "/usr/bin/it's pollux", Version: "1",
	}
}

func tree(t *testing.T, root string) (files []string) {
	t.Helper()
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p != root {
			files = append(files, p)
		}
		return nil
	})
	return files
}

func TestInstallTwiceAndUninstall(t *testing.T) {
	for _, editor := range Editors() {
		i := installer(t)
		i.DryRun = true
		if r, err := i.Install(editor); err != nil || len(r.Changes) < 2 || len(tree(t, i.Machine.Home)) != 0 {
			t.Fatalf("a dry run: %+v, %v, %v", r, err, tree(t, i.Machine.Home))
		}
		i.DryRun = false
		if _, err := i.Install(editor); err != nil {
			t.Fatal(err)
		}
		before := tree(t, i.Machine.Home)
		r, err := i.Install(editor)
		if err != nil || len(tree(t, i.Machine.Home)) != len(before) {
			t.Fatal(err)
		}
		for _, c := range r.Changes {
			if c.Action != "keep" {
				t.Errorf("the second time: %+v", c)
			}
		}
		i.Command, i.Version = "/opt/pollux", "2" // an upgrade
		if _, err := i.Install(editor); err != nil {
			t.Fatal(err)
		}
		states, err := i.States(t.Context(), func(string) (string, error) { return "", fs.ErrNotExist })
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range states {
			if (s.Installed == "2") != (s.Editor == editor) || s.Changed != nil {
				t.Errorf("%+v", s)
			}
		}
		if _, err := i.Uninstall(editor); err != nil {
			t.Fatal(err)
		}
		for _, path := range tree(t, i.Machine.Home) {
			if !strings.HasPrefix(path, filepath.Dir(i.Record)) {
				t.Errorf("%s is left", path)
			}
		}
		if _, err := i.Uninstall(editor); !errors.Is(err, ErrNotInstalled) {
			t.Error(err)
		}
	}
}

// Files of the user are never overwritten or removed.
func TestUsersFilesStay(t *testing.T) {
	i := installer(t)
	place, _ := i.Machine.place("neovim")
	foreign := filepath.Join(place, "plugin", "pollux.lua")
	write(t, foreign, "mine")
	if _, err := i.Install("neovim"); err == nil || !strings.Contains(err.Error(), foreign) || len(tree(t, place)) != 2 {
		t.Fatalf("%v, %v", err, tree(t, place))
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(place, "plugin", "other.lua"), "mine")
	if _, err := i.Install("neovim"); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(place, "pollux", "doc", "pollux.txt")
	write(t, changed, "my notes")
	if _, err := i.Install("neovim"); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Error(err)
	}
	r, err := i.Uninstall("neovim")
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, c := range r.Changes {
		if c.Action == "leave" {
			left++
			if c.Path != changed {
				t.Errorf("%+v", c)
			}
		}
	}
	for path, want := range map[string]string{changed: "my notes", filepath.Join(place, "plugin", "other.lua"): "mine"} {
		if data, err := os.ReadFile(path); err != nil || string(data) != want || left != 1 {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

// A link in place of a file is never followed; a folder that is a link, as in many people's dotfiles, is.
func TestLinks(t *testing.T) {
	i := installer(t)
	place, _ := i.Machine.place("vim")
	dotfiles := filepath.Join(i.Machine.Home, "dotfiles")
	if err := os.MkdirAll(dotfiles, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dotfiles, filepath.Join(i.Machine.Home, ".vim")); err != nil {
		t.Skip(err)
	}
	if _, err := i.Install("vim"); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Uninstall("vim"); err != nil || len(tree(t, dotfiles)) != 0 {
		t.Errorf("%v, %v", err, tree(t, dotfiles))
	}
	target := filepath.Join(i.Machine.Home, "secret")
	write(t, target, "x")
	if err := os.MkdirAll(filepath.Join(place, "plugin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(place, "plugin", "pollux.vim")); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Install("vim"); err == nil {
		t.Error("a link was followed")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
