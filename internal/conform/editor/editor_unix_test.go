//go:build unix

package editor

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/conform"
)

// TestMain lets this program be the editor, and the stand-in for pollux, too.
func TestMain(m *testing.M) {
	switch args := os.Args[1:]; {
	case len(args) > 1 && args[0] == "stub":
		(&stub{fault: args[1]}).main()
	case len(args) > 2 && args[0] == "conform" && args[1] == "--"+PlugFlag:
		os.Exit(Plug(context.Background(), args[2], args[4:], os.Stdin, os.Stdout, os.Stderr))
	default:
		os.Exit(m.Run())
	}
}

func nextRune(s string) (rune, int) { return utf8.DecodeRuneInString(s) }

func lastRune(s string) int { _, size := utf8.DecodeLastRuneInString(s); return size }

// try runs the suite against the stub with a fault.
func try(t *testing.T, fault, only string, keys Keys, wait time.Duration) map[string]conform.Check {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]conform.Check{}
	_, err = Run(t.Context(), Options{Command: []string{self, "stub", fault}, Keys: keys, Wait: wait, start: wait, Only: only}, func(c conform.Check) { all[c.Name] = c })
	if err != nil {
		t.Logf("the run ends with %v", err)
	}
	return all
}

func keysOf(t *testing.T) Keys {
	t.Helper()
	keys, err := ParseKeys([]byte(stubKeys))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// A plugin that does all that the protocol asks for passes every check, and without keys all that need no user.
func TestGood(t *testing.T) {
	for name, keys := range map[string]Keys{"with a user": keysOf(t), "alone": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skipped := 0
			all := try(t, "none", "", keys, time.Minute)
			for _, c := range all {
				switch {
				case c.Result == conform.Fail:
					t.Errorf("%s: %s", c.Name, c.Evidence)
				case c.Result == conform.Skip && keys != nil:
					t.Errorf("%s is left out: %s", c.Name, c.Evidence)
				case c.Result == conform.Skip:
					skipped++
				}
			}
			if len(all) != len(checks()) || skipped > 30 {
				t.Errorf("%d checks of %d, %d left out", len(all), len(checks()), skipped)
			}
		})
	}
}

// Each fault fails the check that is about it.
func TestFaults(t *testing.T) {
	for fault, check := range map[string]string{
		"no name": "EP-1/announcement", "no process": "EP-1/process", "another folder": "EP-1/folders", "no initialized": "EP-1/initialized", "hasty": "EP-1/waits for the answer",
		"null for unknown": "EP-2/unknown request", "unknown ends it": "EP-2/unknown notification", "members end it": "EP-2/unknown members", "ids are numbers": "EP-2/ids",
		"bytes as they come": "EP-2/pieces", "malformed ends it": "EP-2/malformed", "small messages": "EP-2/huge", "no version": everyMessage,
		"only says opened": "EP-3/open document", "bytes": "EP-3/cursor", "characters": "EP-3/cursor", "short lines": "EP-3/long line", "names as they are": "EP-3/names",
		"opens in silence": "EP-3/a user opens", "selects for ever": "EP-3/a user selects", "selects too much": "EP-3/a user selects", "everything is a file": "EP-3/no file", "each key": "EP-3/rate",
		"null for yes": "EP-4/shown", "decides what is closed": "EP-4/shown", "new files unknown": "EP-4/new file", "unknown is closed": "EP-4/unknown id", "one diff": "EP-4/two at once",
		"the first stays": "EP-4/same path", "edits what is fixed": "EP-4/read only", "writes the file": "EP-4/writes nothing", "ignores what is newer": "EP-4/newer base",
		"LF": "EP-4/exact: CRLF", "a last newline": "EP-4/exact: no last newline", "no mark": "EP-4/exact: byte order mark", "cut": "EP-4/exact: 1 MB",
		"edits in silence": "EP-5/edit", "accepts the first text": "EP-5/accept an edit", "decides twice": "EP-5/reject", "accepts into the file": "EP-5/writes nothing", "the view goes": "EP-5/refused",
		"no environment": "EP-6/environment", "environment once": "EP-6/environment", "nothing is unset": "EP-6/environment", "status ends it": "EP-6/status", "says yes": "EP-6/question", "saves nothing": "EP-6/save",
		"stays dead": "EP-7/starts again", "forgets diffs": "EP-7/starts again", "no context again": "EP-7/context again", "waits for ever": "EP-8/end",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			if c := try(t, fault, check, keysOf(t), 2*time.Second)[check]; c.Result != conform.Fail {
				t.Errorf("%s: %q, %s", check, c.Result, c.Evidence)
			}
		})
	}
}

// Faults of single messages are found by the run as a whole.
func TestFaultsOfMessages(t *testing.T) {
	for fault, check := range map[string]string{"repeats itself": everyContext, "names as they are": everyContext, "decides twice": everyDecision} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			if c := try(t, fault, "EP-", keysOf(t), 2*time.Second)[check]; c.Result != conform.Fail {
				t.Errorf("%s: %q, %s", check, c.Result, c.Evidence)
			}
		})
	}
}

func TestParseKeys(t *testing.T) {
	for in, want := range map[string]string{`[]`: "no JSON object", `{"fly": "x"}`: `"fly"`, `{"open": ":e"}`: "{path}", `{"accept": 1}`: "no JSON object"} {
		if _, err := ParseKeys([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// A plugin that starts no pollux is named, with what the editor shows.
func TestNoPlugin(t *testing.T) {
	_, err := Run(t.Context(), Options{Command: []string{"sh", "-c", "echo hello"}, Wait: time.Second}, nil)
	if err == nil || !strings.Contains(err.Error(), "ended") {
		t.Error(err)
	}
	if _, err := Run(t.Context(), Options{Command: []string{"/nowhere/editor"}}, nil); err == nil {
		t.Error("an editor that is not there is started")
	}
	var errs bytes.Buffer
	if code := Plug(t.Context(), "/nowhere", nil, nil, nil, &errs); code != 1 || errs.Len() == 0 {
		t.Errorf("%d, %s", code, &errs)
	}
}
