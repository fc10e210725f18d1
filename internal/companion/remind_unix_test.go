//go:build unix

package companion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/settings"
)

// The user's command hears that something waits, and nothing of what (SPEC F-11).
func TestNotify(t *testing.T) {
	o, a, b := options(t)
	home := os.Getenv("HOME")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	told, tell := filepath.Join(b, "told"), filepath.Join(b, "tell")
	if err := os.WriteFile(tell, []byte("#!/bin/sh\n{ echo \"$@\"; env; } > "+told+".new; mv "+told+".new "+told+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Settings.Notify = settings.Notify{Seconds: 1, Command: []string{tell, "pollux"}}
	start(t, o)
	file := filepath.Join(a, "hidden-name.txt")
	asker := join(t, o, a)
	if err := join(t, o, a).Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	propose(t, asker, control.Proposal{Path: file, IsNew: true, New: "hidden text\n"}).open(t)
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(told)
		if err == nil {
			if got := string(data); !strings.HasPrefix(got, "pollux\n") || !strings.Contains(got, "POLLUX_WAITING=1\n") || strings.Contains(got, "hidden") {
				t.Errorf("the command heard %q", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the command has not run")
		}
	}
}
