package ide

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// environment makes a getenv from "K=V K=V".
func environment(pairs string) func(string) string {
	return func(name string) string {
		for pair := range strings.FieldsSeq(pairs) {
			if k, v, _ := strings.Cut(pair, "="); k == name {
				return v
			}
		}
		return ""
	}
}

// SPEC I-3: every editor's plugin folder on every platform, with each variable that moves it.
func TestPlaces(t *testing.T) {
	const home = "/h"
	for _, tt := range []struct{ os, editor, env, want string }{
		{"linux", "neovim", "NVIM_APPNAME=my/nvim", "/h/.local/share/my/nvim/site"},
		{"linux", "neovim", "XDG_DATA_HOME=/d", "/d/nvim/site"},
		{"darwin", "neovim", "XDG_DATA_HOME=/d NVIM_APPNAME=x", "/d/x/site"},
		{"windows", "neovim", `LOCALAPPDATA=C:\L NVIM_APPNAME=x`, `C:\L\x-data\site`},
		{"windows", "neovim", `XDG_DATA_HOME=D:\d LOCALAPPDATA=C:\L`, `D:\d\nvim-data\site`},
		{"windows", "neovim", "", `\h\AppData\Local\nvim-data\site`},
		{"darwin", "vim", "XDG_CONFIG_HOME=/c", "/h/.vim/pack/pollux/start/pollux"},
		{"windows", "vim", "", `\h\vimfiles\pack\pollux\start\pollux`},
		{"darwin", "emacs", "", "/h/.emacs.d/elpa/pollux-" + emacsVersion},
		{"windows", "emacs", `HOME=C:\u`, `C:\u\.emacs.d\elpa\pollux-` + emacsVersion},
		{"windows", "emacs", "", `\h\AppData\Roaming\.emacs.d\elpa\pollux-` + emacsVersion},
		{"linux", "micro", "", "/h/.config/micro/plug/pollux"},
		{"darwin", "micro", "XDG_CONFIG_HOME=/c", "/c/micro/plug/pollux"},
		{"linux", "kakoune", "", "/h/.config/kak/pollux"},
		{"darwin", "kakoune", "XDG_CONFIG_HOME=/c KAKOUNE_CONFIG_DIR=/k", "/k/pollux"},
		{"linux", "micro", "XDG_CONFIG_HOME=/c MICRO_CONFIG_HOME=/m", "/m/plug/pollux"},
	} {
		m := Machine{OS: tt.os, Home: home, Getenv: environment(tt.env)}
		if got, err := m.place(tt.editor); err != nil || got != tt.want {
			t.Errorf("%s on %s with %q: %q, %v; want %q", tt.editor, tt.os, tt.env, got, err, tt.want)
		}
	}
}

// An editor's older folder wins, as it does in the editor.
func TestPlacesThatExist(t *testing.T) {
	for _, tt := range []struct {
		editor, want string
		there        []string
	}{
		{"vim", ".config/vim/", []string{".config/vim/vimrc"}},
		{"vim", ".vim/", []string{".config/vim/vimrc", ".vimrc"}},
		{"vim", ".vim/", []string{".config/vim/vimrc", ".vim/vimrc"}},
		{"emacs", ".config/emacs/", []string{".config/emacs/init.el"}},
		{"emacs", ".emacs.d/", []string{".config/emacs/init.el", ".emacs"}},
		{"emacs", ".emacs.d/", []string{".config/emacs/init.el", ".emacs.el"}},
		{"emacs", ".emacs.d/", []string{".config/emacs/init.el", ".emacs.d/init.el"}},
	} {
		i := installer(t)
		for _, name := range tt.there {
			write(t, filepath.Join(i.Machine.Home, filepath.FromSlash(name)), "mine")
		}
		place, err := i.Machine.place(tt.editor)
		if err != nil || !strings.HasPrefix(place, filepath.Join(i.Machine.Home, filepath.FromSlash(tt.want))) {
			t.Errorf("%s beside %v: %q, %v", tt.editor, tt.there, place, err)
		}
		if _, err := i.Install(tt.editor); err != nil {
			t.Error(err)
		}
		if _, err := i.Uninstall(tt.editor); err != nil {
			t.Error(err)
		}
		for _, name := range tt.there {
			if data, err := os.ReadFile(filepath.Join(i.Machine.Home, filepath.FromSlash(name))); err != nil || string(data) != "mine" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
	}
}

// If nothing can be written, nothing is recorded, and the message names the place.
func TestReadOnlyHome(t *testing.T) {
	for _, editor := range Editors() {
		i := installer(t)
		write(t, i.Record, "{}")
		place, err := i.Machine.place(editor)
		if err != nil {
			t.Fatal(err)
		}
		// A file in place of the folder stops everybody, even root.
		write(t, filepath.Dir(place), "in the way")
		if _, err := i.Install(editor); err == nil || !strings.Contains(err.Error(), filepath.Dir(place)) {
			t.Errorf("%s: %v", editor, err)
		}
		if data, err := os.ReadFile(filepath.Dir(place)); err != nil || string(data) != "in the way" {
			t.Errorf("%s: %q, %v", editor, data, err)
		}
		if err := os.Remove(filepath.Dir(place)); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Install(editor); err != nil {
			t.Errorf("%s: afterwards: %v", editor, err)
		}
	}
}

// The error names a folder that cannot be written to, and a half-finished installation can be completed or removed.
func TestHalfWritten(t *testing.T) {
	i := installer(t)
	place, err := i.Machine.place("vim")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(place, "plugin"), "in the way") // the last folder
	if _, err := i.Install("vim"); err == nil || !strings.Contains(err.Error(), "plugin") {
		t.Error(err)
	}
	if _, err := i.Uninstall("vim"); err != nil && !strings.Contains(err.Error(), "not installed") {
		t.Error(err)
	}
	if left := tree(t, place); len(left) != 1 || left[0] != filepath.Join(place, "plugin") {
		t.Errorf("left: %v", left)
	}
	if err := os.Remove(filepath.Join(place, "plugin")); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Install("vim"); err != nil {
		t.Error(err)
	}
}

// An upgrade removes files that the new version lacks, unless the user changed them.
func TestUpgradeRemoves(t *testing.T) {
	i := installer(t)
	if _, err := i.Install("neovim"); err != nil {
		t.Fatal(err)
	}
	place, err := i.Machine.place("neovim")
	if err != nil {
		t.Fatal(err)
	}
	old, mine := filepath.Join(place, "pollux", "lua", "pollux", "old.lua"), filepath.Join(place, "pollux", "lua", "pollux", "mine.lua")
	records, err := i.load()
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{old: "old", mine: "changed"} {
		write(t, path, content)
		records["neovim"].Files[path] = hash([]byte("old"))
	}
	data, err := json.Marshal(records)
	if err == nil {
		err = safefile.Write(i.Record, data, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.Version = "2"
	r, err := i.Install("neovim")
	if err != nil || !slices.Contains(r.Changes, Change{"remove", old}) || !slices.Contains(r.Changes, Change{"leave", mine}) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Lstat(old); err == nil {
		t.Error("the old file is left")
	}
	if data, err := os.ReadFile(mine); err != nil || string(data) != "changed" {
		t.Errorf("%q, %v", data, err)
	}
}

// Files for a platform hold that platform's paths, quoted for the editor's language.
func TestCommandsOfPlatforms(t *testing.T) {
	for _, tt := range []struct{ editor, file, command, want string }{
		{"neovim", "pollux/lua/pollux/installed.lua", `C:\Program Files\pollux.exe`, `"C:\\Program Files\\pollux.exe"`},
		{"vim", "autoload/pollux/installed.vim", `C:\it's\pollux.exe`, `'C:\it''s\pollux.exe'`},
		{"micro", "installed.lua", `C:\Program Files\pollux.exe`, `"C:\\Program Files\\pollux.exe"`},
		{"kakoune", "installed.kak", `/it's/pollux`, `'/it''s/pollux'`},
		{"emacs", "pollux-autoloads.el", `/home/a "b"/pollux`, `"/home/a \"b\"/pollux"`},
	} {
		files, err := files(tt.editor, tt.command)
		if err != nil || !strings.Contains(string(files[tt.file]), tt.want) {
			t.Errorf("%s: %s, %v", tt.editor, files[tt.file], err)
		}
	}
}

// SPEC I-3: VS Code's family's commands in the usual places of each platform.
func TestForkPlaces(t *testing.T) {
	for _, tt := range []struct{ os, editor, env, want string }{
		{"darwin", "vscode", "", "/Applications/Visual Studio Code.app/Contents/Resources/app/bin/code"},
		{"darwin", "cursor", "", "/h/Applications/Cursor.app/Contents/Resources/app/bin/cursor"},
		{"windows", "vscode", `LOCALAPPDATA=C:\L ProgramFiles=C:\P`, `C:\L\Programs\Microsoft VS Code\bin\code.cmd`},
		{"windows", "vscodium", `LOCALAPPDATA=C:\L ProgramFiles=C:\P`, `C:\P\VSCodium\bin\codium.cmd`},
		{"linux", "vscode", "", "/usr/share/code/bin/code"},
		{"linux", "code-server", "", "/h/.local/bin/code-server"},
		{"linux", "vscode-insiders", "", "/snap/bin/code-insiders"},
	} {
		m := Machine{OS: tt.os, Home: "/h", Getenv: environment(tt.env)}
		if places := m.forkPlaces(forks()[tt.editor]); !slices.Contains(places, tt.want) {
			t.Errorf("%s on %s: %q", tt.editor, tt.os, places)
		}
	}
	found := Machine{OS: "linux", Home: "/h", Getenv: environment("")}
	command, ok, err := found.Fork("cursor", func(name string) (string, error) {
		if name == "cursor" {
			return "/opt/cursor", nil
		}
		return "", fs.ErrNotExist
	})
	if command != "/opt/cursor" || !ok || err != nil {
		t.Error(command, ok, err)
	}
}
