//go:build unix

package remind

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Terminals that print what they do not know get the bell alone.
func TestAlarm(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"", "\a"},
		{"TERM=dumb", "\a"},
		{"TERM=linux", "\a"},
		{"TERM=eterm-color", "\a"},
		{"TERM=vt100", "\a"},
		{"TERM=xterm-256color", "\a\x1b]9;pollux: x\x1b\\"},
		{"TERM=tmux-256color", "\a\x1b]9;pollux: x\x1b\\"},
		{"TERM=xterm-256color VTE_VERSION=7600", "\a\x1b]777;notify;pollux;x\x1b\\"},
		{"TERM=foot", "\a\x1b]777;notify;pollux;x\x1b\\"},
		{"TERM=rxvt-unicode", "\a\x1b]777;notify;pollux;x\x1b\\"},
	} {
		if got := alarm(strings.Fields(tt.env), "x"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.env, got, tt.want)
		}
	}
}

// The user's command runs in the home folder and hears a number; one that a workspace could have put there does not run.
func TestCommand(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Join(project, "bin")+":bin")
	program := func(dir string) string {
		path := filepath.Join(dir, "bin", "tell")
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$POLLUX_WAITING $* $PWD\" > \"$HOME/told\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mine, theirs := program(home), program(project)
	link := filepath.Join(home, "link")
	os.Symlink(theirs, link)
	t.Chdir(project)
	os.Mkdir(".git", 0o700)
	for _, tt := range []struct {
		command []string
		want    string
		logged  string
	}{
		{[]string{mine, "$(x)", "; y"}, "2 $(x) ; y " + home, ""},
		{[]string{theirs}, "", "in the workspace"},
		{[]string{link}, "", "in the workspace"},
		{[]string{"tell"}, "", "where the project that you are in can put it"},
		{[]string{"no-such-program"}, "", "not found"},
		{[]string{"false"}, "", "exit status 1"},
	} {
		os.Remove(filepath.Join(home, "told"))
		var log bytes.Buffer
		w := &Ways{Command: tt.command, Roots: func() []string { return []string{project} }, Log: slog.New(slog.NewTextHandler(&log, nil))}
		w.Tell(t.Context(), 2)
		told, _ := os.ReadFile(filepath.Join(home, "told"))
		if strings.TrimSpace(string(told)) != tt.want || !strings.Contains(log.String(), tt.logged) || tt.logged == "" && log.Len() > 0 {
			t.Errorf("%q: told %q, logged %q", tt.command, told, log.String())
		}
	}
}
