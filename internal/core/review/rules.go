package review

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Mode is what a policy does with a proposal (SPEC F-11).
type Mode string

const (
	// Ask shows the diff and waits for the user.
	Ask Mode = "ask"
	// AcceptAll accepts without asking.
	AcceptAll Mode = "accept"
	// Terminal leaves the question to the agent's own terminal.
	Terminal Mode = "terminal"
)

// A Rule is one line of the user's policy. The narrowest rule that fits decides;
// among equals, the latest. An exact path is narrower than a glob, and a glob than no
// pattern. Of two that are alike in that, the rule for a single owner is narrower.
type Rule struct {
	Mode Mode `json:"mode"`
	// Owner limits the rule to one session (by Label), Pattern to the paths
	// that match it: an absolute path, or a glob with * ? ** over absolute paths
	// (* and ? stop at separators, ** does not; "/a/**/b" matches "/a/b" too; [*] and [?] are the characters themselves).
	// Both empty: the default for everything.
	Owner   string `json:"owner,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

// FilePattern returns the pattern that fits exactly this path, whatever characters the path has. Without it, a rule
// for the file "a*.txt" would accept changes of other files.
func FilePattern(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]").Replace(path)
}

// maxRules bounds a policy; the oldest rules give way (SPEC A-4).
const maxRules = 1000

// A policy holds the rules in the order in which the user made them. It is never changed in place: set returns another
// one, so that a loop over the rules may go on while somebody adds one.
type policy []compiledRule

type compiledRule struct {
	Rule
	glob *regexp.Regexp // nil without a pattern
	// exact is the path that FilePattern made the pattern of, "" for any other pattern.
	exact string
}

// set adds r; see Registry.SetRule. A rule with an unknown mode asks.
func (p policy) set(r Rule) (policy, compiledRule) {
	if r.Mode != AcceptAll && r.Mode != Terminal {
		r.Mode = Ask
	}
	c := compiledRule{Rule: r}
	if r.Pattern != "" {
		c.glob = compileGlob(r.Pattern)
		if path := strings.NewReplacer("[*]", "*", "[?]", "?").Replace(r.Pattern); FilePattern(path) == r.Pattern {
			c.exact = path
		}
	}
	p = slices.DeleteFunc(slices.Clone(p), func(o compiledRule) bool {
		return o.Owner == r.Owner && o.Pattern == r.Pattern
	})
	if len(p) >= maxRules {
		p = p[1:]
	}
	if c.Rule != (Rule{Mode: Ask}) { // Ask is the default; don't store it
		p = append(p, c)
	}
	return p, c
}

// mode returns what the policy wants for a path of the session with that label.
func (p policy) mode(label, path string) Mode {
	mode, narrowest := Ask, 0
	for _, r := range p {
		if n := r.fits(label, path); n > 0 && n >= narrowest { // of equals, the latest
			mode, narrowest = r.Mode, n
		}
	}
	return mode
}

// fits reports how narrowly the rule fits, 0 when it does not. An exact path counts 4, a glob 2 and an owner 1, so that
// no owner outweighs a narrower pattern.
func (r compiledRule) fits(label, path string) int {
	n := 1
	switch {
	case r.Pattern == "":
	case r.exact == path && r.exact != "", r.exact == "" && r.Pattern == path:
		n += 4
	case len(path) <= maxGlob && r.glob.MatchString(filepath.ToSlash(path)):
		n += 2
	default:
		return 0
	}
	switch r.Owner {
	case "":
	case label:
		n++
	default:
		return 0
	}
	return n
}

// maxGlob bounds patterns and the paths that they are matched with, in bytes. No path is longer, and the time to match grows with both.
const maxGlob = 4096

// compileGlob never fails: everything but * ? ** stands for itself. A pattern that is too long fits nothing.
func compileGlob(pattern string) *regexp.Regexp {
	if len(pattern) > maxGlob {
		pattern = "\x00" // no path holds it
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for rest := filepath.ToSlash(pattern); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			rest = rest[2:]
		case strings.HasPrefix(rest, "[*]"), strings.HasPrefix(rest, "[?]"):
			b.WriteString(`\` + rest[1:2])
			rest = rest[3:]
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			rest = rest[1:]
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			rest = rest[1:]
		default:
			n := strings.IndexAny(rest[1:], "*?[") + 1
			if n == 0 {
				n = len(rest)
			}
			b.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(rest[:n], "\ufffd")))
			rest = rest[n:]
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}
