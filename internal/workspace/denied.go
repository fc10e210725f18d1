package workspace

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A Denier is one agent's settings by which a user keeps files from that agent's own tools. Denying obeys them for this agent alone.
type Denier struct {
	Agent, Label string // "claude", "Claude Code"
	// Always are settings files that hold everywhere, absolute, from the weakest. An entry may be a pattern of package filepath.
	Always []string
	// Beside are settings files that hold in one folder and below it, relative to that folder, from the weakest.
	Beside []string
	// Read returns what a settings file says about reading. folder is the one that the file holds for, "" when it holds everywhere.
	// An error is the rest of a sentence that begins with the file's name.
	Read func(data []byte, file, folder string) ([]Denial, error)
	// Folders returns the folders where the agent runs now. Their settings count for every file. nil for none.
	Folders func() []string
	// Own returns the settings files of an agent with this environment that hold everywhere; nil when the environment moves none. Owned
	// returns those of the agents that run now, which count beside Always; nil for none.
	Own   func(getenv func(string) string) []string
	Owned func() []string
}

// A Denial is one line of an agent's settings.
type Denial struct {
	// Deny: the line denies what it fits. Otherwise it takes off what a weaker line denies.
	Deny bool
	// Chain separates lines that do not know of each other: a file is denied when one chain denies it. Within a chain the last line that
	// fits decides. Two lines with the same Tool and Pattern are one, which stands at the place of the first and says what the last says.
	Chain, Tool, Pattern string
	// Whole: Pattern is compared with a file's whole path, where "*" stands for any text and "?" for one character. Otherwise Pattern is as in a
	// .gitignore, without regard to case.
	Whole bool
	// Base is the folder that a pattern of a .gitignore is relative to; "" for each folder.
	Base string
}

// A denier is a Denier with its compiled lines.
type denier struct {
	Denier
	combined map[string]*denials // by the settings files that they come from; guarded by ignoreCache.mu
}

// maxCombined bounds how many combinations of settings files are remembered for one agent.
const maxCombined = 64

// denials are the lines of several settings files, the strongest last.
type denials struct {
	files []*ignoreFile
	lines []denialLine
}

type denialLine struct {
	Denial
	pattern *pattern
	whole   []*glob
}

// readDenials makes a reader for ignoreCache.load.
func readDenials(d *denier, folder string) func(f *ignoreFile, data []byte) {
	return func(f *ignoreFile, data []byte) {
		lines, err := d.Read(data, f.path, folder)
		switch {
		case err != nil:
			f.problem = err.Error()
		case len(lines) > maxPatterns:
			f.problem = "has more than 10,000 rules; shorten it"
		case slices.ContainsFunc(lines, func(l Denial) bool { return len(l.Pattern) > maxPattern }):
			f.problem = "has a rule that is longer than any path; shorten it"
		default:
			f.denials = lines
		}
	}
}

// Deniable returns the agents whose settings are obeyed.
func (w *Workspace) Deniable() (agents []string) {
	for _, d := range w.deniers {
		agents = append(agents, d.Agent)
	}
	return agents
}

// Denying returns a function that says whether an agent's settings keep a file from it, or cannot be followed, for the files of one moment.
// It is not safe for concurrent use.
func (w *Workspace) Denying() (denied func(agent, path string) bool) {
	ds, reals, tops := map[string]*denying{}, map[string]string{}, map[string]string{}
	return func(agent, path string) bool {
		for i := range w.deniers {
			if d := &w.deniers[i]; d.Agent == agent {
				if ds[agent] == nil {
					ds[agent] = &denying{w: w, d: d, effort: effort{left: contextEffort, bytes: contextBytes}, loaded: map[string]*ignoreFile{}, reals: reals, tops: tops, rules: map[string]*denials{}}
				}
				return ds[agent].denies(path)
			}
		}
		return false
	}
}

// A denying is one call of Denying, for one agent.
type denying struct {
	w      *Workspace
	d      *denier
	effort effort
	always []*ignoreFile // of Always and Folders; nil before the first file
	loaded map[string]*ignoreFile
	reals  map[string]string   // the names behind links, for all agents
	tops   map[string]string   // see top; for all agents
	rules  map[string]*denials // by folder
}

func (s *denying) denies(path string) bool {
	if s.effort.exhausted() {
		return true
	}
	names := []string{filepath.Clean(path)}
	if _, ok := s.reals[path]; !ok {
		s.reals[path] = paths.Real(path)
	}
	if real := s.reals[path]; real != names[0] {
		names = append(names, real)
	}
	for _, name := range names {
		root := filepath.VolumeName(name) + string(filepath.Separator)
		if r, ok := s.w.rootOf(name); ok {
			root = r
		}
		rules := s.in(filepath.Dir(name), root)
		if rules == nil {
			return true
		}
		denied := rules.deny(name, root, s.top(filepath.Dir(name)), s.top(root), &s.effort)
		if s.effort.exhausted() {
			last := rules.files[len(rules.files)-1]
			s.w.ignores.blame(last, tooCostly)
			s.w.denied(last, tooCostly)
		}
		if denied {
			return true
		}
	}
	return false
}

// top returns the innermost folder at or above dir that git has a repository in; the file system's root when there is none.
func (s *denying) top(dir string) string {
	if top, ok := s.tops[dir]; ok {
		return top
	}
	top := dir
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil && filepath.Dir(dir) != dir {
		top = s.top(filepath.Dir(dir))
	}
	s.tops[dir] = top
	return top
}

// in returns the rules for the files of a folder; nil when one of their settings files cannot be followed.
func (s *denying) in(dir, root string) *denials {
	if rules, ok := s.rules[dir]; ok {
		return rules
	}
	if s.always == nil {
		s.always = s.everywhere()
	}
	files := slices.Clone(s.always)
	from := root
	if top := s.top(root); top != filepath.Dir(top) {
		from = top // an agent in a folder of a repository may heed the settings of the whole repository
	}
	rel, err := filepath.Rel(from, dir)
	if err != nil {
		rel = "."
	}
	files = append(files, s.beside(from)...)
	for at, rest := from, rel; rest != "." && rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		at = filepath.Join(at, name)
		files = append(files, s.beside(at)...)
	}
	rules := s.combine(files)
	s.rules[dir] = rules
	return rules
}

func (s *denying) everywhere() []*ignoreFile {
	files := []*ignoreFile{}
	for _, pattern := range s.d.everywhere() {
		var matches []string
		if strings.ContainsAny(pattern, `*?[\`) { // Glob would look for any other name in vain
			matches, _ = filepath.Glob(pattern)
		}
		if len(matches) == 0 {
			matches = []string{pattern} // it may be a link that leads nowhere, or become one
		}
		for _, path := range matches {
			files = append(files, s.load(path, ""))
		}
	}
	folders := s.w.Roots()
	if s.d.Folders != nil {
		folders = append(slices.Clone(folders), s.d.Folders()...)
	}
	for _, folder := range folders {
		files = append(files, s.beside(folder)...)
	}
	return slices.DeleteFunc(files, func(f *ignoreFile) bool { return f == nil })
}

// everywhere returns the settings files that hold everywhere now.
func (d *Denier) everywhere() []string {
	all := slices.Clone(d.Always)
	if d.Owned != nil {
		all = append(all, d.Owned()...)
	}
	return all
}

func (s *denying) beside(folder string) (files []*ignoreFile) {
	for _, name := range s.d.Beside {
		if f := s.load(filepath.Join(folder, filepath.FromSlash(name)), folder); f != nil {
			files = append(files, f)
		}
	}
	return files
}

func (s *denying) load(path, folder string) *ignoreFile {
	key := path + "\x00" + folder
	if f, ok := s.loaded[key]; ok {
		return f
	}
	f := s.w.loadDenials(s.d, path, folder, &s.effort)
	s.loaded[key] = f
	if f == nil || f.problem == "" {
		s.w.withheld.note(path, "")
		return f
	}
	s.w.denied(f, f.problem)
	return f
}

func (w *Workspace) loadDenials(d *denier, path, folder string, e *effort) *ignoreFile {
	return w.ignores.loadAs(path, strings.Join([]string{path, d.Agent, folder}, "\x00"), e, readDenials(d, folder))
}

// combine compiles the lines of files; nil when one of them has a problem.
func (s *denying) combine(files []*ignoreFile) *denials {
	if slices.ContainsFunc(files, func(f *ignoreFile) bool { return f.problem != "" }) {
		return nil
	}
	var unique []*ignoreFile
	var key strings.Builder
	for _, f := range files {
		if !slices.Contains(unique, f) {
			unique = append(unique, f)
			key.WriteString(f.path + "\x00")
		}
	}
	c := &s.w.ignores
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := s.d.combined[key.String()]; have != nil && slices.Equal(have.files, unique) {
		return have
	}
	made := combineDenials(unique)
	if len(s.d.combined) >= maxCombined || s.d.combined == nil {
		s.d.combined = make(map[string]*denials)
	}
	s.d.combined[key.String()] = made
	return made
}

func combineDenials(files []*ignoreFile) *denials {
	type key struct{ chain, tool, pattern, base string }
	type group struct{ chain, tool string }
	out := &denials{files: files}
	places, groups := map[key]int{}, map[group]int{}
	var rank []int // of a line's group
	var lines []Denial
	for _, f := range files {
		for _, l := range f.denials {
			g := group{l.Chain, l.Tool}
			if _, ok := groups[g]; !ok {
				groups[g] = len(groups)
			}
			k := key{l.Chain, l.Tool, l.Pattern, l.Base}
			if at, ok := places[k]; ok {
				lines[at].Deny = l.Deny
				continue
			}
			places[k] = len(lines)
			lines, rank = append(lines, l), append(rank, groups[g])
		}
	}
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	for _, i := range order {
		if l, ok := compileDenial(lines[i]); ok {
			out.lines = append(out.lines, l)
		}
	}
	return out
}

// compileDenial makes a pattern that fits at least what the agent's own fits: a "?" or "[…]" stands for a whole character, as agents count
// them.
func compileDenial(d Denial) (l denialLine, ok bool) {
	l.Denial = d
	if d.Whole {
		all := []string{d.Pattern}
		if less, ok := strings.CutSuffix(d.Pattern, " *"); ok {
			all = append(all, less)
		}
		for _, one := range all {
			l.whole = append(l.whole, wholeGlob(wholeName(one)))
		}
		return l, true
	}
	text := folded(trimBlanks(d.Pattern))
	if strings.HasPrefix(text, "#") { // no comment here
		text = `\` + text
	}
	p, ok := parsePattern(text, false)
	for _, s := range p.segments {
		if s.glob == nil {
			continue
		}
		for i, t := range s.glob.tokens {
			if t.kind == any1 || t.kind == oneOf && s.glob.sets[t.set][2]|s.glob.sets[t.set][3] != 0 {
				s.glob.tokens[i] = token{kind: anyRune}
			}
		}
	}
	l.pattern = &p
	return l, ok && !p.negated
}

// wholeName prepares a path or pattern for a comparison as a whole.
func wholeName(s string) string {
	if paths.FoldCase() {
		return folded(s)
	}
	return s
}

// FitsWhole says whether a name fits a pattern, where "*" stands for any text and "?" for one character.
func FitsWhole(pattern, name string) bool { return wholeGlob(pattern).matches(name, nil) }

// wholeGlob compiles a pattern whose only special characters are "*" and "?".
func wholeGlob(pattern string) *glob {
	g := &glob{}
	for i := range len(pattern) {
		switch c := pattern[i]; c {
		case '*':
			if n := len(g.tokens); n == 0 || g.tokens[n-1].kind != star {
				g.tokens = append(g.tokens, token{kind: star})
			}
		case '?':
			g.tokens = append(g.tokens, token{kind: anyRune})
		default:
			g.tokens = append(g.tokens, token{b: c})
		}
	}
	return g
}

// deny says whether the lines deny a file. tops are the repositories that an agent could run in: a line of Whole denies by the file's path from
// any of them, from root, or from the file system's root; it takes off a denial only when it fits from all of tops.
func (d *denials) deny(path, root, top1, top2 string, e *effort) bool {
	if len(d.lines) == 0 {
		return false
	}
	tops := []string{below(top1, path), below(top2, path)}
	all := []string{tops[0], tops[1], below(root, path), filepath.ToSlash(path)}
	decided := map[string]bool{} // by chain
	for i := len(d.lines) - 1; i >= 0; i-- {
		l := &d.lines[i]
		if _, ok := decided[l.Chain]; ok {
			continue
		}
		var fits bool
		switch {
		case !l.Whole:
			fits = l.fits(path, root, e)
		case l.Deny:
			fits = slices.ContainsFunc(all, func(name string) bool { return l.fitsWhole(name, e) })
		default:
			fits = !slices.ContainsFunc(tops, func(name string) bool { return !l.fitsWhole(name, e) })
		}
		if e.exhausted() || fits && l.Deny {
			return true
		}
		if fits {
			decided[l.Chain] = false
		}
	}
	return false
}

// folded maps names that agents take for the same to one.
func folded(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// below returns path as seen from a folder, with slashes.
func below(folder, path string) string {
	if rel, err := filepath.Rel(folder, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

func (l *denialLine) fitsWhole(name string, e *effort) bool {
	return slices.ContainsFunc(l.whole, func(g *glob) bool {
		return e.spend(1) && g.matches(wholeName(name), e)
	})
}

// fits says whether a pattern of a .gitignore names a file or a folder above it.
func (l *denialLine) fits(path, root string, e *effort) bool {
	if l.Base != "" {
		return l.fitsFrom(l.Base, path, e) || l.fitsFrom(paths.Real(l.Base), path, e)
	}
	if !l.pattern.anchored {
		return l.fitsFrom(root, path, e)
	}
	for dir := filepath.Dir(path); e.spend(1); dir = filepath.Dir(dir) {
		if l.fitsFrom(dir, path, e) {
			return true
		}
		if len(dir) <= len(root) {
			return false
		}
	}
	return false
}

func (l *denialLine) fitsFrom(base, path string, e *effort) bool {
	if !paths.Within(base, path) {
		return false
	}
	names := strings.FieldsFunc(folded(below(base, path)), func(c rune) bool { return c == '/' })
	for i := range names {
		if l.pattern.matches(names[:i+1], i+1 < len(names), e) {
			return true
		}
	}
	return false
}

// denied reports settings that cannot be followed.
func (w *Workspace) denied(f *ignoreFile, problem string) {
	if w.withheld.note(f.path, problem) && w.options.Withholds != nil {
		w.options.Withholds(w.withholds(f.path, problem))
	}
}

// denierOf returns the agent whose settings a file is; folder is the one that it holds for, "" for all.
func (w *Workspace) denierOf(file string) (d *denier, folder string) {
	for i := range w.deniers {
		d := &w.deniers[i]
		for _, always := range d.everywhere() {
			if ok, err := filepath.Match(always, file); err == nil && ok || always == file {
				return d, ""
			}
		}
		for _, beside := range d.Beside {
			if folder, ok := strings.CutSuffix(file, string(filepath.Separator)+filepath.FromSlash(beside)); ok {
				return d, folder
			}
		}
	}
	return nil, ""
}

// WhyDenied returns nil when an agent's settings do not keep a path from it, otherwise what to tell the user.
func (w *Workspace) WhyDenied(agent, path string) error {
	for _, d := range w.deniers {
		if d.Agent == agent && w.Denying()(agent, path) {
			return fmt.Errorf("%q is kept from %s by its own settings: its tools may not read it", path, d.Label)
		}
	}
	return nil
}
