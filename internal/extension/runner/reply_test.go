package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/sandbox"
)

// TestOneValue: one JSON value stays unchanged byte for byte; for any other text the error says why.
func TestOneValue(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\": 12345678901234567890.10, \"a\":1}\n": `{"a": 12345678901234567890.10, "a":1}`,
		" [1,2] ": `[1,2]`, "null": "null", `"x"`: `"x"`, "7\n\n": "7",
	} {
		if got, why := oneValue([]byte(in), false); string(got) != want || why != "" {
			t.Errorf("%q: %q %q", in, got, why)
		}
	}
	for in, want := range map[string]string{
		"":                   "it printed nothing",
		" \n":                "it printed nothing",
		"hello":              "its output is no JSON: invalid character 'h' looking for beginning of value, at line 1, column 1",
		"{\n \"a\": nope}":   "at line 2, column 8",
		"{}\n{}":             "more than one JSON value was printed; the second begins at line 2, column",
		"{} x":               "more than one JSON value",
		`{"a":`:              "it ends before the value does",
		"\"\xff\"":           "its output is not UTF-8",
		"warning: x\n{\"a\"": "at line 1, column 1",
	} {
		if got, why := oneValue([]byte(in), false); got != nil || !strings.Contains(why, want) {
			t.Errorf("%q: %q %q, want %q", in, got, why, want)
		}
	}
	if got, why := oneValue([]byte("{}"), true); got != nil || !strings.Contains(why, "cut off") {
		t.Errorf("%q %q", got, why)
	}
}

// TestReply: what a model gets.
func TestReply(t *testing.T) {
	good := &Result{Tool: "t", JSON: []byte(`{"a":1}`), Text: `{"a":1}`}
	failed := &Result{Tool: "t", Code: 2, Stderr: "usage: t --file FILE\n", Text: "half"}
	late := &Result{Tool: "t", Code: 137, Limit: &sandbox.LimitError{Kind: "time", Limit: int64(time.Minute)}, Text: "first lines"}
	killed := &Result{Tool: "t", Code: 139, Signal: 11}
	denied := &Result{Tool: "t", Code: 1, Stderr: "fetch failed", Denials: []sandbox.Denial{{Host: "evil.example.com", Port: 443, Why: "the policy does not allow it", Count: 2}}}
	for _, test := range []struct {
		name   string
		result *Result
		err    error
		failed bool
		want   []string
	}{
		{"json", good, nil, false, []string{`{"a":1}`}},
		{"text", &Result{Tool: "t", Text: "hello\n"}, nil, false, []string{"hello"}},
		{"nothing", &Result{Tool: "t"}, nil, false, []string{"printed nothing"}},
		{"not json", &Result{Tool: "t", Text: "oops", NotJSON: "its output is no JSON"}, nil, false, []string{"should answer JSON, but its output is no JSON", "oops"}},
		{"exit", failed, failed.failure(), true, []string{`failed with exit code 2`, "usage: t --file FILE", "It had printed:\nhalf"}},
		{"time", late, late.failure(), true, []string{"ended after 1m0s", "Ask it for less", "first lines"}},
		{"signal", killed, killed.failure(), true, []string{"signal 11 (segmentation fault)"}},
		{"denied", denied, denied.failure(), true, []string{"refused it a contact with evil.example.com", "fetch failed"}},
		{"arguments", nil, &ArgumentError{Signature: "t(file: string)", Missing: []string{"file"}}, true, []string{"missing: file", "call the tool again"}},
		{"consent", nil, &RefusedError{Why: BecauseConsent, Text: "the user has not agreed"}, true, []string{"the user has not agreed", "user's decision"}},
		{"sandbox", nil, &sandbox.SetupError{Phase: "userns", Cause: "no"}, true, []string{"was not run", "tell the user"}},
		{"cancelled", nil, context.Canceled, true, []string{"cancel"}},
	} {
		text, isError := Reply(test.result, test.err, 10_000)
		if isError != test.failed {
			t.Errorf("%s: %v", test.name, isError)
		}
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q lacks %q", test.name, text, want)
			}
		}
	}
	if text, _ := Reply(good, nil, 10_000); text != `{"a":1}` {
		t.Errorf("a good answer is not given as it came: %q", text)
	}
	long := &Result{Tool: "t", Text: "begin " + strings.Repeat("ä€😀", 50_000) + " end"}
	for _, max := range []int{100, 101, 102, 103, 1000, 39_000} {
		text, _ := Reply(long, nil, max)
		if len(text) > max || !utf8.ValidString(text) || !strings.HasPrefix(text, "begin") || !strings.HasSuffix(text, "end") {
			t.Errorf("%d: %d bytes, %.50q … %q", max, len(text), text, text[max0(len(text)-20):])
		}
	}
	if text, _ := Reply(nil, errors.New(fmt.Sprint(long.Text)), 500); len(text) > 500 {
		t.Error(len(text))
	}
}

func max0(n int) int { return max(0, n) }

// FuzzOneValue: a value is what was printed, byte for byte, and valid; otherwise there is a reason.
func FuzzOneValue(f *testing.F) {
	for _, seed := range []string{"{}", "0\f", "[1,2", "1 2", "\"\xff\"", " null\n", "{\"a\":1e999}", "-", "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		value, why := oneValue(out, false)
		if (value == nil) == (why == "") {
			t.Fatalf("%q: %q %q", out, value, why)
		}
		if value != nil && (!json.Valid(value) || !utf8.Valid(value) || !bytes.Equal(value, bytes.Trim(out, " \t\r\n"))) {
			t.Fatalf("%q: %q", out, value)
		}
	})
}
