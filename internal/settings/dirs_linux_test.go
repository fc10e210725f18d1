package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// SPEC §11.3.
func TestFolders(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	tests := []struct{ config, state, wantConfig, wantState string }{
		{"", "", "/home/u/.config/pollux", "/home/u/.local/state/pollux"},
		{"/c", "/s", "/c/pollux", "/s/pollux"},
		{"/c", "relative", "/c/pollux", "/home/u/.local/state/pollux"},
	}
	for _, tt := range tests {
		t.Setenv("XDG_CONFIG_HOME", tt.config)
		t.Setenv("XDG_STATE_HOME", tt.state)
		d, err := Folders()
		if err != nil || d.Config != tt.wantConfig || d.State != tt.wantState {
			t.Errorf("%+v: %+v, %v", tt, d, err)
		}
		if d.ConfigFile() != tt.wantConfig+"/config.json" || d.LogFile() != tt.wantState+"/pollux.log" {
			t.Errorf("%s, %s", d.ConfigFile(), d.LogFile())
		}
	}
}

func TestRunDirs(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("XDG_STATE_HOME", "/s")
	t.Setenv("XDG_RUNTIME_DIR", "/r")
	want := []string{"/r/pollux", "/s/pollux/run", fmt.Sprintf("/tmp/pollux-%d", os.Getuid())}
	d, _ := Folders()
	if len(d.Run) < 3 || !slices.Equal(d.Run[:3], want) {
		t.Errorf("%v, want %v first", d.Run, want)
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	d, _ = Folders()
	if d.Run[0] != "/s/pollux/run" {
		t.Errorf("without a runtime folder: %v", d.Run)
	}
	for _, dir := range d.Run {
		if !filepath.IsAbs(dir) {
			t.Errorf("%s is not absolute", dir)
		}
	}
}

// A companion that was started without XDG_STATE_HOME is found with it, and by a process with another HOME.
func TestPointersOfOthers(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", "")
	d, err := Folders()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.Pointers(), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", "/s")
	if other, err := Folders(); err != nil || !slices.Contains(other.Run, d.Pointers()) {
		t.Errorf("%v, %v: not %s", other.Run, err, d.Pointers())
	}
	if all := homes(); all[0] != home {
		t.Errorf("%v", all)
	}
}

func TestNoHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, "")
	}
	if d, err := Folders(); err == nil {
		t.Errorf("%+v without a home", d)
	}
}
