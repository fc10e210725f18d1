package review

import (
	"fmt"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"/a/b.go", "/a/b.go", true},
		{"/a/b.go", "/a/bxgo", false},
		{"/a/*.go", "/a/b.go", true},
		{"/a/*.go", "/a/.go", true},
		{"/a/*.go", "/a/b/c.go", false},
		{"/a/?.go", "/a/b.go", true},
		{"/a/?.go", "/a/bc.go", false},
		{"/a?b", "/a/b", false},
		{"/a/?", "/a/é", true},
		{"/a/**", "/a/b/c", true},
		{"/a/**", "/ab", false},
		{"/a/**/c", "/a/c", true},
		{"/a/**/c", "/a/b/b/c", true},
		{"/a/**/c", "/a/bc", false},
		{"**/*.go", "/x/y.go", true},
		{"/a/[b]", "/a/b", false},
		{"/a/[b]", "/a/[b]", true},
		{"/a/{b,c}", "/a/b", false},
		{"/a/[*]", "/a/*", true},
		{"/a/[*]", "/a/b", false},
		{"/a/[*]", "/a/[*]", false},
		{"/a/[[*]]", "/a/[*]", true},
		{"/a/[?].go", "/a/?.go", true},
		{"/a/[?].go", "/a/x.go", false},
		{"/a/[", "/a/[", true},
		{"/a/[**]", "/a/[b/c]", true},
		{"/a/**", "/a/b\nc", true},
		{"/a", "/a\n", false},
		{"/a", "x/a", false},
		{"/a/***", "/a/b/c", true},
		{"", "/a", false},
	} {
		if got := compileGlob(tt.pattern).MatchString(tt.path); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.path, got, tt.want)
		}
	}
}

// SPEC F-11: the narrowest rule that fits decides, of equals the latest.
func TestPolicy(t *testing.T) {
	all, own, glob, exact := Rule{Mode: AcceptAll}, Rule{Mode: Terminal, Owner: "1"}, Rule{Mode: AcceptAll, Pattern: "/w/*"}, Rule{Mode: Ask, Pattern: "/w/a"}
	for i, tt := range []struct {
		rules       []Rule
		label, path string
		want        Mode
	}{
		{nil, "1", "/w/a", Ask},
		{[]Rule{all}, "1", "/w/a", AcceptAll},
		{[]Rule{own, all}, "1", "/w/a", Terminal},
		{[]Rule{own, all}, "2", "/w/a", AcceptAll},
		{[]Rule{glob, own}, "1", "/w/a", AcceptAll},
		{[]Rule{glob, own}, "1", "/x", Terminal},
		{[]Rule{exact, glob}, "1", "/w/a", Ask},
		{[]Rule{exact, glob}, "1", "/w/b", AcceptAll},
		{[]Rule{{AcceptAll, "1", "/w/a"}, exact}, "1", "/w/a", AcceptAll},
		{[]Rule{{AcceptAll, "1", "/w/a"}, exact}, "2", "/w/a", Ask},
		{[]Rule{glob, {Terminal, "", "/**"}}, "1", "/w/a", Terminal},
		{[]Rule{{Terminal, "", "/**"}, glob}, "1", "/w/a", AcceptAll},
		{[]Rule{glob, {Ask, "", "/w/*"}}, "1", "/w/a", Ask},
		{[]Rule{all, {Mode: Ask}}, "1", "/w/a", Ask},
		{[]Rule{all, {Mode: "nonsense"}}, "1", "/w/a", Ask},
		{[]Rule{{AcceptAll, "", "/w/[x]*"}}, "1", "/w/[x]y", AcceptAll},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a*")}}, "1", "/w/a*", AcceptAll},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a*")}}, "1", "/w/ab", Ask},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a?")}}, "1", "/w/ab", Ask},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a?")}}, "1", "/w/a[?]", Ask},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a[?]")}}, "1", "/w/a[?]", AcceptAll},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a[?]")}}, "1", "/w/a?", Ask},
		{[]Rule{{AcceptAll, "", FilePattern("/w/a*")}, {Ask, "", "/w/*"}}, "1", "/w/a*", AcceptAll}, // the narrower one
	} {
		var p policy
		for _, r := range tt.rules {
			p, _ = p.set(r)
		}
		if got := p.mode(tt.label, tt.path); got != tt.want {
			t.Errorf("%d: %v say %q of %s by %s, want %q", i, tt.rules, got, tt.path, tt.label, tt.want)
		}
	}
}

func TestPolicyIsBounded(t *testing.T) {
	var p policy
	for i := range maxRules + 5 {
		p, _ = p.set(Rule{Mode: AcceptAll, Pattern: fmt.Sprint("/", i)})
	}
	if len(p) != maxRules || p.mode("", "/0") != Ask || p.mode("", fmt.Sprint("/", maxRules+4)) != AcceptAll {
		t.Errorf("%d rules are kept", len(p))
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("/a/**/*.g?", "/a/b/c.go")
	f.Add("\xff(", "\xff(")
	f.Add("/a[*]", "/a*")
	f.Add("/a*", "/a[*]")
	f.Add("/a[[*]]", "/a[*]")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		var p policy
		_, c := p.set(Rule{Mode: AcceptAll, Pattern: pattern})
		c.fits("", path) // never fails, whatever it is
		p, _ = p.set(Rule{Mode: AcceptAll, Pattern: path})
		quotes := strings.Contains(path, "[*]") || strings.Contains(path, "[?]")
		if path != "" && !quotes && p.mode("", path) != AcceptAll {
			t.Errorf("%q as a pattern does not fit itself", path)
		}
		p, _ = policy(nil).set(Rule{Mode: AcceptAll, Pattern: FilePattern(path)})
		if path != "" && p.mode("", path) != AcceptAll {
			t.Errorf("the pattern of the file %q does not fit it", path)
		}
		if path != "" && pattern != path && p.mode("", pattern) != Ask && strings.ToValidUTF8(pattern, "\ufffd") != strings.ToValidUTF8(path, "\ufffd") {
			t.Errorf("the pattern of the file %q fits %q too", path, pattern)
		}
	})
}
