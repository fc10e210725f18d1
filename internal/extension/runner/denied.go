package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// A FileDenial is a file that a tool mentioned and that its sandbox withheld. The kernel reports no such denial, and
// the tool sees a missing file. So pollux derives it from the tool's output and the sandbox's plan, without looking
// at the disk.
type FileDenial struct {
	Path   string `json:"path"`
	Access string `json:"access" jsonschema:"read or write"`
	Needs  string `json:"needs,omitempty" jsonschema:"the level of that permission that would allow it; absent when none would"`
	Why    string `json:"why"`
}

// Words returns the denial as a sentence without a final period.
func (d FileDenial) Words() string {
	verb := map[string]string{"read": "reading", "write": "changing"}[d.Access]
	return fmt.Sprintf("%s %q: %s", verb, words.Printable(d.Path), d.Why)
}

const (
	maxFileDenials = 10
	maxScanned     = 64 << 10 // of a tool's output, in bytes
)

// complaint matches how programs report an inaccessible file, refusal how they report one that cannot be changed.
var (
	complaint = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)no such file|enoent|permission ?(denied|error)|eacces|not permitted|eperm|read-only file ?system|erofs|(cannot|can't|could not|unable to) (open|read|write|create|access|stat|find|remove)`)
	})
	refusal = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)permission ?(denied|error)|eacces|not permitted|eperm|read-only file ?system|erofs`)
	})
	// creation matches how they report a file that they were to make or change.
	creation = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)read-only file ?system|erofs|(cannot|can't|could not|unable to) (create|write|make|touch|remove|rename|move)`)
	})
	// named matches a name before the reason, as cat and sh write it.
	named = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`([^\s:'"]+): (?i:no such file|permission denied|read-only file|operation not permitted|enoent|eacces|erofs|eperm)`)
	})
	quotedPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("'([^']+)'|\"([^\"]+)\"|‘([^’]+)’|`([^`]+)`") })
)

// fileDenials returns the files that the tool complained about and that its permissions withhold.
func (r *Runner) fileDenials(p *job, result *Result) []FileDenial {
	if p.q.Unsafe {
		return nil
	}
	var lines []string
	for _, text := range []string{result.Stderr, result.Text} {
		for line := range strings.Lines(text[:min(len(text), maxScanned)]) {
			if len(lines) < 100 && complaint().MatchString(line) {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	c := p.command(p.content.dir)
	c.Copies = []sandbox.Copy{{Dir: p.content.dir, Files: p.content.held()}}
	plan, err := r.o.Sandbox.Explain(p.subject.Permissions, c)
	if err != nil {
		return nil // the tool has run all the same
	}
	var all []FileDenial
	for _, line := range lines {
		for _, word := range pathsIn(line) {
			if complaint().MatchString(word) {
				continue
			}
			d, ok := p.denied(plan, word, line)
			if ok && r.o.Sandbox.InSecretStore(d.Path) {
				d = FileDenial{Path: d.Path, Access: "read", Why: outOfReach}
			}
			if ok && len(all) < maxFileDenials && !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// pathsIn returns the words of a line that may be paths.
func pathsIn(line string) (all []string) {
	for _, m := range quotedPath().FindAllStringSubmatch(line, 20) {
		for _, part := range m[1:] {
			if part != "" {
				all = append(all, part)
			}
		}
	}
	if m := named().FindStringSubmatch(line); m != nil && !strings.HasSuffix(strings.ToLower(m[1]), "error") {
		all = append(all, m[1])
	}
	for word := range strings.FieldsSeq(line) {
		if word = strings.Trim(word, ":;,.()[]{}<>'\"‘’`"); (strings.Contains(word, "/") || strings.Contains(strings.Trim(word, "."), ".")) && len(all) < 40 {
			all = append(all, word)
		}
	}
	return all
}

// outOfReach is why a file of a secret store is refused.
const outOfReach = "secret stores are out of reach of every permission"

// denied checks a path in a tool's complaint against the plan. A relative path is relative to the folder where the
// tool was called.
func (p *job) denied(plan *sandbox.Plan, path, line string) (FileDenial, bool) {
	if len(path) > 1024 || strings.ContainsAny(path, "\x00\n") || strings.Contains(path, "://") {
		return FileDenial{}, false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.dir, path)
	}
	path = filepath.Clean(path)
	for _, own := range []string{"/proc", "/dev", "/tmp", "/var/tmp", p.content.dir} {
		if paths.Within(own, path) && !paths.Within(own, p.workspaceOr(own)) {
			return FileDenial{}, false
		}
	}
	have := p.subject.Permissions
	d := FileDenial{Path: path}
	at := access(plan, path)
	if at == sandbox.AccessPrivate && p.level(path) < permission.Full {
		at = sandbox.AccessNone // the sandbox has an empty folder there instead of the user's
	}
	switch at {
	case sandbox.AccessNone:
		if creation().MatchString(line) {
			d.Access = "write"
			return d.explain(p.level(path), have.Write), true
		}
		d.Access = "read"
		return d.explain(p.level(path), have.EffectiveRead()), true
	case sandbox.AccessHidden:
		d.Access, d.Why = "read", outOfReach
		return d, true
	case sandbox.AccessRead:
		d.Access = "write"
		return d.explain(p.level(path), have.Write), refusal().MatchString(line) && p.level(path) < permission.Full // no level allows changing system files
	}
	return FileDenial{}, false
}

// workspaceOr returns the tool's workspace, or the folder of other if there is none.
func (p *job) workspaceOr(other string) string {
	if p.workspace == "" {
		return filepath.Dir(other)
	}
	return p.workspace
}

// explain says what would allow it.
func (d FileDenial) explain(needs, have permission.Access) FileDenial {
	if needs <= have {
		d.Why = "it is protected, or not a user's file, at every level"
		return d
	}
	d.Needs = needs.String()
	d.Why = fmt.Sprintf(`the permission "%s" is %q, and %q would allow it`, d.Access, have, needs)
	return d
}

// level returns the lowest level that includes a path.
func (p *job) level(path string) permission.Access {
	if p.workspace != "" && paths.Within(p.workspace, path) || p.workspace == "" && paths.Within(p.dir, path) {
		return permission.Workspace
	}
	if home, err := os.UserHomeDir(); err == nil {
		if paths.Within(paths.Real(home), path) {
			return permission.Home
		}
	}
	return permission.Full
}

// access returns the plan's access to a path: that of the nearest listed folder at or above it.
func access(plan *sandbox.Plan, path string) sandbox.Access {
	best, found := "", plan.Elsewhere
	for _, e := range plan.Paths {
		if e.Access != sandbox.AccessWatched && e.Access != sandbox.AccessLink && paths.Within(e.Path, path) && len(e.Path) >= len(best) {
			best, found = e.Path, e.Access
		}
	}
	return found
}
