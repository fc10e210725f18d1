package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// awkward holds characters that encoders often get wrong.
const awkward = "a\"b\\c/\n\r\t\b\f\x00\x1f\x7f é 世界 😀 \u2028\u2029 \u2027 \u20ac </script> \uFFFD end"

// F-6: every text survives every message unchanged, escaped once or twice.
func TestEncodersKeepText(t *testing.T) {
	for _, s := range []string{"", "plain", awkward, strings.Repeat(awkward, 50)} {
		var notified struct {
			Method string
			Params struct{ FilePath, Content string }
		}
		mustUnmarshal(t, Accepted(s, s), &notified)
		if notified.Params.FilePath != s || notified.Params.Content != s || notified.Method != NotifyAccepted {
			t.Errorf("Accepted: %+v", notified)
		}
		for _, edited := range []bool{false, true} {
			var closed struct {
				Result struct{ Content []struct{ Type, Text string } }
			}
			mustUnmarshal(t, Closed([]byte("1"), s, edited), &closed)
			var inner map[string]string
			mustUnmarshal(t, []byte(closed.Result.Content[0].Text), &inner)
			want := map[bool]string{false: "finalContent", true: "content"}[edited]
			if got, ok := inner[want]; !ok || got != s || len(inner) != 1 {
				t.Errorf("Closed(edited %v): %q", edited, inner)
			}
		}
	}
}

func mustUnmarshal(t *testing.T, b []byte, v any) {
	t.Helper()
	if strings.ContainsAny(string(b), "\n\r\u2028\u2029") {
		t.Errorf("a line break in %q", b)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

// FuzzContext: the CLI can parse every context (SPEC C-1).
func FuzzContext(f *testing.F) {
	f.Add("/a", int64(5), true, 1, 2, "sel", true)
	f.Add("/\xff", int64(-1), false, 0, 0, awkward, false)
	f.Fuzz(func(t *testing.T, path string, stamp int64, active bool, line, char int, selected string, trusted bool) {
		c := &IdeContext{Files: []File{{Path: path, Timestamp: stamp, Active: active, Cursor: &Cursor{line, char}, Selected: selected}, {Path: "/b"}}}
		if trusted {
			c.Trusted = &trusted
		}
		b := ContextUpdate(c)
		var m struct {
			Params struct {
				WorkspaceState struct {
					OpenFiles []map[string]any
					IsTrusted *bool
				}
			}
		}
		if err := json.Unmarshal(b, &m); err != nil || strings.ContainsAny(string(b), "\n\r") {
			t.Fatalf("%v: %s", err, b)
		}
		state := m.Params.WorkspaceState
		if (state.IsTrusted != nil) != trusted {
			t.Errorf("isTrusted %v", state.IsTrusted)
		}
		if utf8.ValidString(path) != (len(state.OpenFiles) == 2) {
			t.Fatalf("files: %v", state.OpenFiles)
		}
		for _, file := range state.OpenFiles {
			_, isText := file["path"].(string)
			_, isNumber := file["timestamp"].(float64)
			for name, value := range file {
				if value == nil {
					t.Errorf("%s is null", name)
				}
			}
			if !isText || !isNumber || file["isActive"] != true && (file["cursor"] != nil || file["selectedText"] != nil) {
				t.Errorf("file %v", file)
			}
		}
	})
}
