//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SPEC §11.2: the browser gets a private file, no argument list contains the code, and nothing is left behind.
func TestBrowser(t *testing.T) {
	w := newWorld(t)
	bin := filepath.Join(w.root, "bin")
	os.Mkdir(bin, 0o700)
	out := filepath.Join(w.root, "out")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + out + ".args\nstat -c %a \"$1\" >" + out + ".mode\ncat \"$1\" >" + out + ".tmp\nmv " + out + ".tmp " + out + "\n"
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(w.state, "pollux", "open", "old.html")
	os.MkdirAll(filepath.Dir(old), 0o700)
	os.WriteFile(old, nil, 0o600)
	os.Chtimes(old, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
	w.env = append(w.env, "DISPLAY=:0", "SSH_CONNECTION=", "PATH="+bin+":"+os.Getenv("PATH"))
	l := w.start(w.command("serve", "--json"))
	eventually(t, "the browser", func() bool { return exists(out) })
	page, _ := os.ReadFile(out)
	args, _ := os.ReadFile(out + ".args")
	mode, _ := os.ReadFile(out + ".mode")
	address, code, _ := strings.Cut(l.Page, "#code=")
	if !strings.Contains(string(page), address+"#code=") || strings.Contains(string(page), code) {
		t.Errorf("the browser got %s; want %s with a code of its own", page, address)
	}
	if strings.Contains(string(args), "code=") || strings.Count(string(args), "\n") != 1 {
		t.Errorf("its arguments were %s", args)
	}
	if strings.TrimSpace(string(mode)) != "600" && len(mode) > 0 { // empty: no GNU stat
		t.Errorf("the file's mode was %s", mode)
	}
	if exists(old) {
		t.Error("a file of a killed pollux is still there")
	}
	l.signal(syscall.SIGTERM)
	if left := w.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
