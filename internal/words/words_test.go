package words

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Untrusted text cannot move the cursor, change colours or the reading direction.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                  "plain",
		"Grüße, 世界 👨‍👩‍👧":        "Grüße, 世界 👨‍👩‍👧",
		"\x1b[2J\x1b]0;x\x07":    `\u001b[2J\u001b]0;x\u0007`,
		"a\nb\tc\r":              `a\nb c\u000d`,
		"\u202egnp.exe":          `\u202egnp.exe`,
		"zero\u200bwidth\ufeff":  `zero\u200bwidth\ufeff`,
		"\u0085\u009b31m\x7f":    `\u0085\u009b31m\u007f`,
		"tag\U000e0041":          `tag\U000e0041`,
		"bad\xffutf":             "bad\uFFFDutf",
		"bad\xffutf\x1b":         "bad\uFFFDutf" + `\u001b`,
		"line\u2028sep\u2029par": `line\u2028sep\u2029par`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got, want := PrintableLines("a\tb\r\n\x1b[1m\tc\n"), "a\tb\n\\u001b[1m\tc\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEscapeJSON: control characters are escaped, and the text decodes to the same value.
func TestEscapeJSON(t *testing.T) {
	want := "a\u009b31m\u202e\u200b\x7f\u00ad\U000e0041é\n日本"
	text, err := json.Marshal([]string{want})
	if err != nil {
		t.Fatal(err)
	}
	safe := EscapeJSON(string(text))
	if strings.ContainsFunc(safe, Hidden) {
		t.Errorf("%q", safe)
	}
	var got []string
	if err := json.Unmarshal([]byte(safe), &got); err != nil || got[0] != want {
		t.Errorf("%q: %v", got, err)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s                     string
		n                     int
		short, clip, clipsEnd string
	}{
		{"", 0, "", "", ""},
		{"abc", 3, "abc", "abc", "abc"},
		{"abcd", 3, "ab…", "abc", "bcd"},
		{"ab cd", 4, "ab…", "ab c", "b cd"},
		{"héé", 3, "héé", "hé", "é"},
		{"héé", 2, "h…", "h", "é"},
		{"世界世界", 3, "世界…", "世", "界"},
		{"世界世界", 2, "世…", "", ""},
		{"👍👍👍", 2, "👍…", "", ""},
		{"e\u0301\u0302\u0303\u0304", 3, "e\u0301…", "e\u0301", "\u0304"},
		{"e\u0301e\u0301e\u0301", 4, "e\u0301…", "e\u0301e", "e\u0301"},
		{"👨‍👩‍👧👨‍👩‍👧", 9, "👨‍👩‍👧…", "👨\u200d", "\u200d👧"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80…", "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80"},
		{"abc", 0, "…", "", ""},
		{"abc", -1, "…", "", ""},
	} {
		if short, clip, end := Shorten(c.s, c.n), Clip(c.s, c.n), ClipEnd(c.s, c.n); short != c.short || clip != c.clip || end != c.clipsEnd {
			t.Errorf("%q to %d: %q %q %q, want %q %q %q", c.s, c.n, short, clip, end, c.short, c.clip, c.clipsEnd)
		}
	}
}

// FuzzCut: no cut is too long, splits a character, or fails to make progress.
func FuzzCut(f *testing.F) {
	for _, s := range []string{"", "plain", "Grüße, 世界 👨‍👩‍👧", "\x80\x80\x80\x80\x80", "a\xff\xc3", strings.Repeat("e\u0301", 20), "🇩🇪🇩🇪🇩🇪"} {
		for n := range 12 {
			f.Add(s, n)
		}
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		short, clip, end := Shorten(s, n), Clip(s, n), ClipEnd(s, n)
		if len(clip) > max(n, 0) || len(end) > max(n, 0) || !strings.HasPrefix(s, clip) || !strings.HasSuffix(s, end) {
			t.Errorf("%q to %d: %q, %q", s, n, clip, end)
		}
		if len(s) > n && n >= utf8.UTFMax && (len(clip) <= n-utf8.UTFMax || len(end) <= n-utf8.UTFMax) {
			t.Errorf("%q to %d loses more than a character: %q, %q", s, n, clip, end)
		}
		if utf8.ValidString(s) && (!utf8.ValidString(clip) || !utf8.ValidString(end) || !utf8.ValidString(short)) {
			t.Errorf("%q to %d is split: %q, %q, %q", s, n, short, clip, end)
		}
		if utf8.RuneCountInString(short) > max(n, 1) {
			t.Errorf("%q to %d: %q is too long", s, n, short)
		}
		if rest, cut := strings.CutSuffix(short, "…"); short != s && (!cut || !strings.Contains(s, rest)) {
			t.Errorf("%q to %d: %q", s, n, short)
		}
	})
}

// FuzzPrintable: no control character is left, and printable text is unchanged.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[2J", "a\nb\tc", "\u202e", "bad\xff", "tag\U000e0041", "👨‍👩‍👧"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, Hidden) || strings.ContainsAny(got, "\n\t") {
			t.Errorf("%q became %q", s, got)
		}
		if Printable(got) != got {
			t.Errorf("%q became %q, and that %q", s, got, Printable(got))
		}
	})
}

func TestNearest(t *testing.T) {
	names := []string{"code-analyzer", "hello", "yellow", "é"}
	for word, want := range map[string][]string{
		"hallo": {"hello"}, "code": {"code-analyzer"}, "ello": {"hello", "yellow"}, "HELLO": {"hello", "yellow"},
		"zzz": nil, "": nil, "x": nil, "code-analyser": {"code-analyzer"}, strings.Repeat("hello", 50): nil,
	} {
		if got := Nearest(word, names); !slices.Equal(got, want) {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("abcd", []string{"abce", "abcf", "abcg", "abch", "ABCD"}); !slices.Equal(got, []string{"ABCD", "abce", "abcf"}) {
		t.Errorf("%q", got)
	}
}

func TestClosest(t *testing.T) {
	for _, c := range []struct {
		word  string
		limit int
		want  string
	}{{"verson", 2, "version"}, {"verzon", 1, ""}, {"VERSION", 0, "version"}, {"", 0, ""}, {"all", 0, ""}, {"desc", 2, ""}} {
		if got, ok := Closest(c.word, []string{"name", "version", "version2"}, c.limit); got != c.want || ok != (c.want != "") {
			t.Errorf("%q within %d: %q, %v, want %q", c.word, c.limit, got, ok, c.want)
		}
	}
	for word, want := range map[string]int{"": 0, "a": 0, "ab": 1, "abc": 2, "abcdef": 3} {
		if got := Third(word); got != want {
			t.Errorf("%q: %d, want %d", word, got, want)
		}
	}
}
