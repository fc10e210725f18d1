package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/words"
)

// maxFindings bounds a report to a length that people read.
const maxFindings = 200

// checker checks one manifest against the table of shapes and collects findings.
type checker struct {
	shown  string // the file, as findings call it
	data   []byte
	root   *node
	half   bool    // the text ends early: a missing value may only be unread
	folder *folder // nil: only the text is checked
	own    bool    // pollux's own extension, which may have pollux's name
	found  []placed
	more   int      // findings beyond maxFindings
	worst  Severity // of the findings
	path   []string // of the current value, such as tools, [0], .runtime
}

// placed is a finding with the byte offset for sorting.
type placed struct {
	Finding
	at int
}

// say adds a finding about the bytes start to end.
func (c *checker) say(s Severity, start, end int, message, fix string) {
	if c.full() {
		c.more++
		c.worst = max(c.worst, s)
		return
	}
	end = min(max(start, end), len(c.data))
	c.found = append(c.found, placed{at: start, Finding: Finding{
		Severity: s, File: c.shown, Path: strings.Join(c.path, ""),
		Text: excerpt(c.data[start:end]), Message: message, Fix: fix,
	}})
}

// full says that no more findings are kept, so costly messages can be skipped.
func (c *checker) full() bool { return len(c.found) >= maxFindings }

// about is say for a whole value.
func (c *checker) about(s Severity, n *node, message, fix string) {
	c.say(s, n.start, n.end, message, fix)
}

// in runs judge one step further down the path.
func (c *checker) in(step string, judge func()) {
	c.path = append(c.path, step)
	judge()
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) inField(name string, judge func()) {
	if len(c.path) > 0 {
		name = "." + name
	}
	c.in(name, judge)
}

// value checks n against s.
func (c *checker) value(n *node, s *shape) {
	if s.orList && n.kind == kindArray {
		c.list(n, &shape{kind: kindArray, max: s.max, items: s.item()})
		return
	}
	if s.any {
		return // its parent checks it
	}
	if c.half && n.kind == kindNull && n.end <= n.start {
		return // not read
	}
	if n.kind != s.kind {
		c.wrongKind(n, s)
		return
	}
	switch n.kind {
	case kindString:
		c.str(n, s)
	case kindObject:
		c.object(n, s)
	case kindArray:
		c.list(n, s)
	}
	// A judge of an object also checks for missing fields.
	if s.judge != nil && (!c.half || n.kind != kindObject) {
		s.judge(c, n)
	}
}

// item returns s without orList: the shape of the list's entries.
func (s *shape) item() *shape {
	one := *s
	one.orList, one.max = false, 0
	return &one
}

func (c *checker) wrongKind(n *node, s *shape) {
	// The CLI takes any version that is not empty, 0 or null.
	if len(c.path) == 1 && c.path[0] == "version" && n.kind == kindNumber {
		c.about(Warning, n, "the version is a number", fmt.Sprintf("write it in quotes: %q", n.text))
		return
	}
	want := s.kind.String()
	if s.orList {
		want += " or a list of such"
	}
	fix := "correct it or remove the field"
	if n == c.root {
		fix = `begin with {"name": "…", "version": "1.0.0"}`
	} else if s.kind == kindArray && n.kind == s.items.kind {
		fix = "put it in brackets: […]"
	}
	severity := Error
	if s.soft {
		severity = Warning
	}
	c.about(severity, n, fmt.Sprintf("%s must be %s, not %s", c.what(), want, n.kind), fix)
}

// what names the current value.
func (c *checker) what() string {
	if len(c.path) == 0 {
		return "the manifest"
	}
	return strings.Join(c.path, "")
}

func (c *checker) str(n *node, s *shape) {
	if len(s.enum) > 0 && !slices.Contains(s.enum, n.text) {
		choices := "one of " + strings.Join(s.enum, ", ")
		// Suggest only close matches: "all" must not suggest "full".
		if near, ok := words.Closest(n.text, s.enum, len(n.text)/4); ok {
			choices = strconv.Quote(near) + ", or another of " + strings.Join(s.enum, ", ")
		}
		c.about(Error, n, fmt.Sprintf("%s cannot be %q", c.what(), n.text), "write "+choices)
	}
	if s.pattern != nil && !s.pattern().MatchString(n.text) {
		c.about(Error, n, fmt.Sprintf("%s may have only %s", c.what(), s.hint), "rename it")
	}
	if count := utf8.RuneCountInString(n.text); s.max > 0 && count > s.max {
		c.about(Error, n, fmt.Sprintf("%s has %d characters and may have %d", c.what(), count, s.max), "shorten it")
	}
	if i := strings.IndexFunc(n.text, words.Hidden); i >= 0 {
		r, _ := utf8.DecodeRuneInString(n.text[i:])
		c.about(Warning, n, fmt.Sprintf("%s holds the invisible character U+%04X, which can make text look like something else", c.what(), r), "remove it")
	}
}

func (c *checker) list(n *node, s *shape) {
	if s.max > 0 && len(n.items) > s.max {
		c.about(Error, n, fmt.Sprintf("%s has %d entries and may have %d", c.what(), len(n.items), s.max), "remove some")
		return
	}
	for i, item := range n.items {
		c.in("["+strconv.Itoa(i)+"]", func() { c.value(item, s.items) })
	}
}

func (c *checker) object(n *node, s *shape) {
	if s.values != nil {
		c.values(n, s)
		return
	}
	for _, f := range s.fields {
		if v := n.get(f.name); v != nil {
			c.inField(f.name, func() { c.value(v, f.shape) })
		} else if f.required && !c.half {
			c.say(Error, n.start, n.start, fmt.Sprintf("%s has no %q", c.what(), f.name), fmt.Sprintf("add %q: %s", f.name, sample(f.shape)))
		}
	}
	if !s.free {
		c.unknown(n, s)
	}
}

// values checks an object whose names the author chooses.
func (c *checker) values(n *node, s *shape) {
	if s.max > 0 && len(n.members) > s.max {
		c.about(Error, n, fmt.Sprintf("%s has %d entries and may have %d", c.what(), len(n.members), s.max), "remove some")
		return
	}
	for _, m := range n.members {
		c.inField(m.name, func() { c.value(m.value, s.values) })
	}
}

// duplicates reports names that occur twice, in unknown fields too: a reader may see the first, JSON.parse takes the
// last.
func (c *checker) duplicates(n *node) {
	seen := make(map[string]int, len(n.members))
	for _, m := range n.members {
		if first, twice := seen[m.name]; twice {
			line := 0
			if !c.full() {
				line, _ = place(c.data, first)
			}
			c.say(Error, m.start, m.end, fmt.Sprintf("the name %q stands twice; programs take the last and hide the one in line %d", m.name, line), "remove one of them")
		} else if m.name == "__proto__" || m.name == "constructor" || m.name == "prototype" {
			c.say(Warning, m.start, m.end, fmt.Sprintf("Gemini CLI drops the name %q", m.name), "use another name")
		}
		seen[m.name] = m.start
		c.duplicates(m.value)
	}
	for _, item := range n.items {
		c.duplicates(item)
	}
}

// unknown reports names that pollux does not read. They are kept (SPEC E-1). Among permissions they are errors: a
// misspelt permission must not count as an absent one.
func (c *checker) unknown(n *node, s *shape) {
	var names []string
	for _, m := range n.members {
		if slices.ContainsFunc(s.fields, func(f field) bool { return f.name == m.name }) {
			continue
		}
		if names == nil {
			for _, f := range s.fields {
				names = append(names, f.name)
			}
		}
		severity, message, fix := Note, fmt.Sprintf("the field %q is not known here; it is kept and has no effect", m.name), ""
		var near string
		var ok bool
		if !c.full() {
			near, ok = words.Closest(m.name, names, words.Third(m.name))
		}
		switch {
		case s.strict:
			severity, message = Error, fmt.Sprintf("%s has no field %q", c.what(), m.name)
			fix = "write one of " + strings.Join(names, ", ")
			if ok {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
		case ok && n.get(near) == nil:
			severity, fix = Warning, fmt.Sprintf("did you mean %q?", near)
		}
		c.inField(m.name, func() { c.say(severity, m.start, m.end, message, fix) })
	}
}

// unique reports values of field that several entries of a list share.
func (c *checker) unique(list *node, field, what string) {
	seen := map[string]string{}
	for i, item := range list.items {
		n := item.get(field)
		if n == nil || n.kind != kindString {
			continue
		}
		// Case is ignored: not everybody can tell such names apart.
		fold := strings.ToLower(n.text)
		first, twice := seen[fold]
		if !twice {
			seen[fold] = n.text
			continue
		}
		c.in("["+strconv.Itoa(i)+"]."+field, func() {
			if first == n.text {
				c.about(Error, n, fmt.Sprintf("there is a second %s %q", what, n.text), "rename one of them")
			} else {
				c.about(Warning, n, fmt.Sprintf("the %ss %q and %q differ by case alone", what, first, n.text), "rename one of them")
			}
		})
	}
}

// findings returns the findings in the order of the file, with lines and columns.
func (c *checker) findings() Findings {
	slices.SortStableFunc(c.found, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	var out Findings
	for _, p := range c.found {
		p.Line, p.Column = place(c.data, p.at)
		out = append(out, p.Finding)
	}
	if c.more > 0 {
		out = append(out, Finding{Severity: c.worst, File: c.shown, Message: fmt.Sprintf("%d more findings are not shown", c.more), Fix: "repair these first"})
	}
	return out
}

// place turns a byte offset into a 1-based line and column, in code points.
func place(data []byte, at int) (line, column int) {
	at = min(at, len(data))
	head := data[:at]
	line = 1 + bytes.Count(head, []byte("\n"))
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[i+1:]
	}
	return line, 1 + utf8.RuneCount(head)
}

// excerpt returns the first line of text, at most 80 characters.
func excerpt(text []byte) string {
	s, _, more := strings.Cut(string(text), "\n")
	s = strings.TrimRight(strings.ToValidUTF8(s, "\uFFFD"), " \t\r,")
	if r := []rune(s); len(r) > 80 {
		s, more = string(r[:79]), true
	}
	if more {
		s += "…"
	}
	return s
}

// sample returns an example value of a shape, for a fix.
func sample(s *shape) string {
	switch {
	case len(s.enum) > 0:
		return strconv.Quote(s.enum[0])
	case s.kind == kindObject:
		return "{…}"
	case s.kind == kindArray:
		return "[…]"
	}
	return `"…"`
}
