package web

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// What a short answer leaves out can be put back exactly, also around characters of several bytes and units (SPEC F-6).
func TestShorten(t *testing.T) {
	texts := []string{"", "a", "ab", "aa", "aaa", "é", "è", "xéy", "xèy", "😀", "😁", "x😀y", "x😁y", "日本", "日木", "€", "日", "a\nb\n", "a\nc\n", "a\xffb", "\xff"}
	for _, base := range texts {
		for _, s := range texts {
			rest, e := shorten(base, s)
			units := utf16.Encode([]rune(base))
			if e.Start+e.End > len(units) {
				t.Fatalf("%q of %q leaves out %+v", s, base, *e)
			}
			whole := slices.Concat(units[:e.Start], utf16.Encode([]rune(rest)), units[len(units)-e.End:])
			if got := string(utf16.Decode(whole)); got != string([]rune(s)) {
				t.Errorf("%q of %q came back as %q (%q, %+v)", s, base, got, rest, *e)
			}
		}
	}
	big := strings.Repeat("wörter ☃ ", 100_000)
	if rest, _ := shorten(big, big[:500]+"!"+big[500:]); rest != "!" {
		t.Errorf("%d bytes are sent for one character", len(rest))
	}
}

// A long message is the same in ASCII, and others are left alone.
func TestForBrowser(t *testing.T) {
	long := strings.Repeat("plain text, ", 10_000)
	for _, tt := range []struct {
		name, text string
		changes    bool
	}{
		{"short", "ü☃", false},
		{"long, ASCII", long, false},
		{"long", long + "ü\u2028☃😀\\\"" + long, true},
		{"long, at its end", long + "ü", true},
		{"long, mostly beyond ASCII", strings.Repeat("日本語", 30_000), false},
	} {
		msg, err := json.Marshal(map[string]string{"text": tt.text})
		if err != nil {
			t.Fatal(err)
		}
		sent := forBrowser(msg)
		var back map[string]string
		if err := json.Unmarshal(sent, &back); err != nil || back["text"] != tt.text {
			t.Errorf("%s: came back as another text (%v)", tt.name, err)
		}
		if changed := string(sent) != string(msg); changed != tt.changes {
			t.Errorf("%s: changed is %v", tt.name, changed)
		}
	}
}
