package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Scope says where enabling or disabling applies.
type Scope string

// The scopes that the CLI stores on disk.
const (
	User      Scope = "user"
	Workspace Scope = "workspace"
)

// enablement is the CLI's extension-enablement.json: for each extension a list of rules, of which the last matching
// one decides. Unknown parts of the file stay unchanged.
type enablement struct {
	path  string
	home  string
	names []string // in the file's order
	rules map[string][]string
	rest  map[string]map[string]json.RawMessage // other keys of an entry
}

// brokenFile is a file of the CLI's that cannot be read completely, so changing it would lose what the user meant.
type brokenFile struct{ path, why, fix string }

func (b *brokenFile) Error() string {
	return fmt.Sprintf("%q cannot be read (%s); %s", b.path, b.why, b.fix)
}

func (s *Store) enablementFile() string { return filepath.Join(s.Dir(), "extension-enablement.json") }

// readEnablement reads the rules. A broken file is an error. (The CLI treats it as empty and overwrites every rule in
// it.)
func (s *Store) readEnablement() (*enablement, error) {
	e := &enablement{
		path: s.enablementFile(), home: s.home,
		rules: map[string][]string{}, rest: map[string]map[string]json.RawMessage{},
	}
	data, err := readSmall(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err == nil {
		err = e.parse(data)
	}
	if err != nil {
		return e, &brokenFile{e.path, err.Error(), "repair it, or delete it to enable every extension everywhere"}
	}
	return e, nil
}

func (e *enablement) parse(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var entry map[string]json.RawMessage
		if err := d.Decode(&entry); err != nil {
			return fmt.Errorf("the entry %q: %w", key, err)
		}
		var rules []string
		if err := json.Unmarshal(entry["overrides"], &rules); err != nil {
			return fmt.Errorf("the entry %q has no list of strings \"overrides\"", key)
		}
		delete(entry, "overrides")
		name := key.(string)
		e.set(name, rules)
		e.rest[name] = entry
	}
	_, err := d.Token()
	return err
}

func (e *enablement) set(name string, rules []string) {
	if !slices.Contains(e.names, name) {
		e.names = append(e.names, name)
	}
	e.rules[name] = rules
}

// enabled says whether the extension is enabled in the folder at.
func (e *enablement) enabled(name, at string) bool {
	on := true
	for _, text := range e.rules[name] {
		if r := parseRule(text); r.matches(slashed(at)) {
			on = !r.off
		}
	}
	return on
}

// places returns the folders that rules about the extension name, except the home folder and the root.
func (e *enablement) places(name string) []string {
	var out []string
	for _, text := range e.rules[name] {
		dir := filepath.Clean(filepath.FromSlash(parseRule(text).base))
		if filepath.IsAbs(dir) && dir != filepath.Clean(e.home) && filepath.Dir(dir) != dir {
			out = append(out, dir)
		}
	}
	return out
}

// enable adds the CLI's rule for a folder and everything below it, and removes the rules that it overrides.
func (e *enablement) enable(name, at string, on bool) {
	rule := overrideRule{base: slashed(at), off: !on, deep: true}
	var kept []string
	for _, text := range e.rules[name] {
		old := parseRule(text)
		if old.base == rule.base || rule.matches(old.base) {
			continue
		}
		kept = append(kept, text)
	}
	e.set(name, append(kept, rule.String()))
}

// everywhere is the rule that disables an extension outside the home folder too, which the CLI's own rule does not.
// The CLI obeys this rule but never removes it.
const everywhere = "!/*"

// change sets whether name is enabled in a scope.
func (e *enablement) change(name string, scope Scope, on bool, home, workDir string) {
	if scope == User {
		var kept []string
		for _, r := range e.rules[name] {
			if r != everywhere {
				kept = append(kept, r)
			}
		}
		e.set(name, kept)
	}
	switch {
	case scope == Workspace:
		e.enable(name, workDir, on)
	case on:
		e.enable(name, home, true)
	default:
		e.set(name, []string{everywhere})
		e.enable(name, home, false)
	}
}

func (e *enablement) remove(name string) bool {
	if _, known := e.rules[name]; !known {
		return false
	}
	delete(e.rules, name)
	return true
}

// encode returns the file's text, in its original order.
func (e *enablement) encode() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	first := true
	for _, name := range e.names {
		rules, known := e.rules[name]
		if !known {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if rules == nil {
			rules = []string{}
		}
		entry := map[string]any{"overrides": rules}
		for k, v := range e.rest[name] {
			entry[k] = v
		}
		b.Write(indented(name))
		b.WriteByte(':')
		b.Write(indented(entry))
	}
	b.WriteByte('}')
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		panic("store: our own JSON is not valid: " + err.Error())
	}
	return out.Bytes()
}

func (e *enablement) write() error {
	if err := os.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
		return err
	}
	target := paths.Real(e.path) // a link that the user made stays a link
	return safefile.Write(target, e.encode(), &safefile.Options{Mode: 0o644, KeepMode: true})
}

// overrideRule is one rule: a folder with / at both ends, and whether the rule covers everything below it.
type overrideRule struct {
	base      string
	off, deep bool
}

func parseRule(text string) overrideRule {
	base, off := strings.CutPrefix(text, "!")
	base, deep := strings.CutSuffix(base, "*")
	return overrideRule{base: base, off: off, deep: deep}
}

// String returns the rule as in the file.
func (r overrideRule) String() string {
	text := r.base
	if r.off {
		text = "!" + text
	}
	if r.deep {
		text += "*"
	}
	return text
}

// matches matches as the CLI's pattern does: * matches anything, and "/*" also nothing.
func (r overrideRule) matches(folder string) bool {
	glob := r.base
	if r.deep {
		glob += "*"
	}
	pattern := regexp.QuoteMeta(glob)
	pattern = strings.ReplaceAll(pattern, `/\*`, `(/.*)?`)
	pattern = strings.ReplaceAll(pattern, `\*`, `(.*)?`)
	re, err := regexp.Compile("^" + pattern + "$")
	return err == nil && re.MatchString(folder)
}

// slashed returns a folder as in rules: forward slashes, one at each end.
func slashed(folder string) string {
	p := strings.ReplaceAll(folder, `\`, "/")
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if !strings.HasSuffix(p, "/") {
		p += "/"
	}
	return p
}
