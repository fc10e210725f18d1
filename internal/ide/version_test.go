//go:build unix

package ide

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program writes a stand-in for an editor's command.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	write(t, path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// SPEC I-3: the version as the editor reports it, whatever else it prints.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ editor, says, version, problem string }{
		{"neovim", "NVIM v0.7.2\nBuild type: RelWithDebInfo\nLuaJIT 2.1.0-beta3", "0.7.2", ""},
		{"neovim", "NVIM v0.12.0-dev-1234+gabcdef\nBuild type: Debug", "0.12.0-dev-1234+gabcdef", ""},
		{"neovim", "NVIM v0.6.1", "0.6.1", "the plugin needs 0.7 or newer"},
		{"vim", "VIM - Vi IMproved 9.0 (2022 Jun 28, compiled May 04 2023 10:24:44)\nIncluded patches: 1-1378, 1499\n+job +timers", "9.0.1378", ""},
		{"vim", "VIM - Vi IMproved 9.1 (2024 Jan 02)\n", "9.1", ""},
		{"vim", "VIM - Vi IMproved 7.4 (2013 Aug 10)\nIncluded patches: 1-10\n", "7.4.10", "the plugin needs 8.0 or newer"},
		{"vim", "VIM - Vi IMproved 9.0 (x)\nSmall version without GUI.\n+insert_expand -job +jumplist\n", "9.0", "it is built without +job; install a fuller Vim"},
		{"emacs", "GNU Emacs 28.2\nCopyright (C) 2022", "28.2", ""},
		{"emacs", "GNU Emacs 26.3", "26.3", "the plugin needs 27.1 or newer"},
		{"micro", "Version: 2.0.11\nCommit hash: 225927b", "2.0.11", ""},
		{"micro", "Version: 1.4.1", "1.4.1", "the plugin needs 2.0 or newer"},
		{"emacs", "no number at all", "", ""},
		{"emacs", "", "", ""},
		{"neovim", "\x1b]0;title\x07\x1b[31m0.9\x1b[0m;\x00 rm", "0.9", ""},
		{"neovim", strings.Repeat("9", 300) + "." + strings.Repeat("1", 300), "999999.111111111", ""},
	} {
		version, problem := ask(t.Context(), tt.editor, program(t, "cat <<'END'\n"+tt.says+"\nEND"))
		if version != tt.version || problem != tt.problem {
			t.Errorf("%q: %q, %q; want %q, %q", tt.says, version, problem, tt.version, tt.problem)
		}
	}
}

// A supposed editor can neither hang pollux nor fill its memory, and leaves no process running.
func TestHostileVersions(t *testing.T) {
	t.Parallel()
	alive := filepath.Join(t.TempDir(), "alive")
	var wait sync.WaitGroup
	hostile := map[string]string{}
	for what, script := range map[string]string{
		"hangs":           "echo 1.2.3; sleep 600",
		"never stops":     "echo 1.2.3; exec yes",
		"leaves a child":  "echo 1.2.3; (sleep 600; touch " + alive + ") & echo $! > " + alive + ".pid",
		"ignores signals": "trap '' TERM INT HUP; echo 1.2.3; while :; do sleep 600; done",
		"fails":           "echo 1.2.3; exit 3",
		"reads":           "echo 1.2.3; cat",
	} {
		hostile[what] = program(t, script) // written before any runs: a file open for writing cannot be executed
	}
	for what, path := range hostile {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			if version, _ := ask(ctx, "neovim", path); version != "1.2.3" {
				t.Errorf("%s: %q", what, version)
			}
		})
	}
	wait.Wait()
	data, err := os.ReadFile(alive + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(data)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("what it started is left running")
		}
	}
	if version, problem := ask(t.Context(), "vim", "/none/such"); version != "" || problem != "" {
		t.Errorf("%q, %q", version, problem)
	}
}

// VS Code's family, with the version of the installed companion.
func TestForkStates(t *testing.T) {
	t.Parallel()
	code := program(t, "case $1 in --version) printf '1.95.3\\nabcdef\\nx64\\n';; --list-extensions) printf 'x.y@1.0\\npollux.pollux@0.61.0\\n';; esac")
	codium := program(t, "echo 1.90.0")
	find := func(name string) (string, error) {
		if path := map[string]string{"code": code, "codium": codium}[name]; path != "" {
			return path, nil
		}
		return "", fs.ErrNotExist
	}
	states := Machine{OS: "linux", Home: t.TempDir(), Getenv: func(string) string { return "" }}.ForkStates(t.Context(), find)
	if len(states) != 2 || states[0].Editor != "vscode" || states[0].Version != "1.95.3" || states[0].Installed != "0.61.0" ||
		states[1].Editor != "vscodium" || states[1].Version != "1.90.0" || states[1].Installed != "" {
		t.Errorf("%+v", states)
	}
}

// Every alias leads to an existing editor.
func TestAliases(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"nvim": "neovim", "neovim": "neovim", "code": "vscode", "codium": "vscodium", "hx": "helix", "goland": "jetbrains", "gvim": "vim", "ed": "", "": ""} {
		if got := Aliases()[word]; got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// The plugin is written whole or not at all: obstacles are found before anything is written, and a failure halfway
// undoes everything.
func TestInstallIsWhole(t *testing.T) {
	t.Parallel()
	for what, breaks := range map[string]func(t *testing.T, i *Installer, place string){
		"a file where a folder must be": func(t *testing.T, _ *Installer, place string) { write(t, filepath.Join(place, "plugin"), "mine") },
		"no place for the record":       func(t *testing.T, i *Installer, _ string) { write(t, filepath.Dir(i.Record), "mine") },
	} {
		i := installer(t)
		place, err := i.Machine.place("vim")
		if err != nil {
			t.Fatal(err)
		}
		breaks(t, i, place)
		before := tree(t, i.Machine.Home)
		if r, err := i.Install("vim"); err == nil || len(r.Changes) > 0 {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		if after := tree(t, i.Machine.Home); strings.Join(after, " ") != strings.Join(before, " ") {
			t.Errorf("%s: %v became %v", what, before, after)
		}
	}
	i := installer(t)
	if _, err := i.Install("vim"); err != nil {
		t.Fatal(err)
	}
	changed := ""
	for _, path := range tree(t, i.Machine.Home) {
		if filepath.Base(path) == "installed.vim" {
			changed = path
		}
	}
	old, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	i.Command = "/opt/pollux" // an upgrade, whose record cannot be written
	records, err := os.ReadFile(i.Record)
	if err == nil {
		err = errors.Join(os.Remove(i.Record), os.Mkdir(i.Record, 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Install("vim"); err == nil {
		t.Error("it is written without a record")
	}
	if err := errors.Join(os.Remove(i.Record), os.WriteFile(i.Record, records, 0o600)); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(changed); err != nil || string(now) != string(old) {
		t.Errorf("%q, %v", now, err)
	}
}

// A file that the user changed is kept and named each time, until it is gone. Once it is restored it is removed.
func TestUninstallTwice(t *testing.T) {
	t.Parallel()
	i := installer(t)
	if _, err := i.Install("neovim"); err != nil {
		t.Fatal(err)
	}
	place, err := i.Machine.place("neovim")
	if err != nil {
		t.Fatal(err)
	}
	a, b := filepath.Join(place, "pollux", "doc", "pollux.txt"), filepath.Join(place, "plugin", "pollux.lua")
	was, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a, "my notes")
	write(t, b, "-- mine")
	for n := range 3 {
		r, err := i.Uninstall("neovim")
		if left := r.Left(); err != nil || len(left) != 2 || n > 0 && len(r.Changes) != 2 {
			t.Fatalf("%d: %+v, %v", n, r, err)
		}
	}
	states, err := i.States(t.Context(), func(string) (string, error) { return "", fs.ErrNotExist })
	if err != nil || states[0].Installed != "" || strings.Join(states[0].Kept, " ") != b+" "+a {
		t.Errorf("%+v, %v", states[0], err)
	}
	if _, err := i.Install("neovim"); err == nil || !strings.Contains(err.Error(), "was changed since pollux wrote it") {
		t.Error(err)
	}
	write(t, b, string(was))
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if r, err := i.Uninstall("neovim"); err != nil || len(r.Changes) != 1 || r.Changes[0] != (Change{"remove", b}) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := i.Uninstall("neovim"); !errors.Is(err, ErrNotInstalled) {
		t.Error(err)
	}
	if _, err := os.Stat(place); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", place, err)
	}
}
