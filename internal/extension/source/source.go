// Package source turns what a user names as the origin of an extension (a repository, a folder, an archive, a
// release) into a checked tree of files in a folder of the caller's.
//
// Nothing that it fetches ever runs: git runs without the hooks, templates, submodules and helper protocols that a
// repository could use, archives are unpacked entry by entry through [os.Root], and every tree passes [checkTree]
// before the caller sees it.
package source

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/words"
)

// A Kind says how a source is fetched. The values are those of "type" in the CLI's install metadata, except Archive,
// which the CLI does not know.
type Kind string

// The kinds of sources.
const (
	Git     Kind = "git"
	Local   Kind = "local"
	Link    Kind = "link"
	Release Kind = "github-release"
	Archive Kind = "archive"
)

// A Source says where an extension comes from. The zero value means nothing; get one from Parse.
type Source struct {
	Kind Kind `json:"kind"`
	// Location is the URL for git, or an absolute path.
	Location string `json:"location"`
	// Ref is a branch, a tag or a commit; "" means the remote's default branch, or the newest release.
	Ref string `json:"ref,omitempty"`
	// Subdir is the extension's folder inside the source, slash-separated; "" is the top.
	Subdir string `json:"subdir,omitempty"`
	// GitHub is "owner/repo" for a repository on github.com, otherwise "".
	GitHub string `json:"github,omitempty"`
	// PreRelease takes the newest release even if it is marked as a pre-release.
	PreRelease bool `json:"preRelease,omitempty"`
}

// ErrUsage marks a source that the user must write differently.
var ErrUsage = errors.New("not a usable source")

// usageError is an ErrUsage with a sentence for the user.
type usageError string

func (e usageError) Error() string        { return string(e) }
func (e usageError) Is(target error) bool { return target == ErrUsage }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// Wish holds the flags that the user adds to a source.
type Wish struct {
	Ref        string // --ref
	Subdir     string // --path
	PreRelease bool   // --pre-release
}

var (
	shorthand = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)
	})
	scpForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):(.+)$`)
	})
	gitScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(https?|ssh|git\+ssh|sso|git|file)://`) })
)

// Parse reads what the user typed. An existing path wins over owner/repo; relative paths are relative to dir. Errors
// are ErrUsage and say what to type instead.
func Parse(text, dir string, w Wish) (Source, error) {
	if err := checkWish(text, w); err != nil {
		return Source{}, err
	}
	s, err := parse(text, dir)
	if err != nil {
		return Source{}, err
	}
	s.PreRelease = w.PreRelease
	if w.Ref != "" {
		if s.Ref != "" && s.Ref != w.Ref {
			return Source{}, usagef("the address %q names the ref %q and --ref says %q; leave one of them out", text, s.Ref, w.Ref)
		}
		s.Ref = w.Ref
	}
	if w.Subdir != "" {
		if s.Subdir != "" {
			return Source{}, usagef("the address %q already names the folder %q; leave out --path", text, s.Subdir)
		}
		s.Subdir = w.Subdir
	}
	if s.Subdir, err = cleanSubdir(s.Subdir); err != nil {
		return Source{}, err
	}
	if s.Kind == Local && s.Subdir != "" { // recorded as one folder, so that the CLI can update from it
		s.Location, s.Subdir = filepath.Join(s.Location, filepath.FromSlash(s.Subdir)), ""
		if info, err := os.Stat(s.Location); err != nil || !info.IsDir() {
			return Source{}, fmt.Errorf("%w: there is no folder %q", ErrNotFound, s.Location)
		}
	}
	if err := checkRef(s.Ref); err != nil {
		return Source{}, err
	}
	if s.Ref != "" && s.Kind != Git {
		return Source{}, usagef("--ref is for repositories; %q is a %s", text, s.Kind.noun())
	}
	return s, nil
}

func checkWish(text string, w Wish) error {
	switch {
	case text == "":
		return usagef("no source is given; name a git URL, owner/repo, a folder or an archive")
	case strings.HasPrefix(text, "-"):
		return usagef("the source %q starts with a dash, which git would read as an option; for a folder write ./%s", text, text)
	case strings.ContainsFunc(text+w.Ref+w.Subdir, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return usagef("the source %q holds a control character", text)
	}
	return nil
}

// noun returns the word for messages.
func (k Kind) noun() string {
	switch k {
	case Local, Link:
		return "folder"
	case Release:
		return "release"
	case Archive:
		return "archive file"
	default:
		return "repository"
	}
}

func parse(text, dir string) (Source, error) {
	switch {
	case strings.HasPrefix(text, "file://"), gitScheme().MatchString(text):
		return parseURL(text)
	case strings.HasPrefix(text, "github:"):
		return hosted("github.com", strings.TrimPrefix(text, "github:"), text)
	case strings.HasPrefix(text, "gitlab:"):
		return hosted("gitlab.com", strings.TrimPrefix(text, "gitlab:"), text)
	}
	if local, found, err := parseLocal(text, dir); found || err != nil {
		return local, err
	}
	if hidden := words.Address(text); hidden != text {
		return Source{}, usagef("the address %q holds a password, which would stay in the installed copy; write git@host:owner/repo or https://host/owner/repo, and keep the password in git's credential helper", hidden)
	}
	machine, _, _ := strings.Cut(strings.TrimPrefix(text, "["), "/")
	if addr, err := netip.ParseAddr(strings.TrimSuffix(machine, "]")); err == nil && !strings.HasPrefix(text, "fd::") { // git's helper "fd"
		return Source{}, usagef("%q is the address of a machine; write https://HOST/PATH for a repository there, in brackets if HOST has colons", addr)
	}
	if strings.Contains(text, "::") {
		return Source{}, usagef("%q asks git for a helper program (NAME::…), which could run anything; give the https or ssh address", text)
	}
	if m := scpForm().FindStringSubmatch(text); m != nil {
		s := Source{Kind: Git, Location: text}
		if strings.EqualFold(m[2], "github.com") {
			s.GitHub = ownerRepo(m[3])
		}
		return s, nil
	}
	if shorthand().MatchString(text) {
		return hosted("github.com", text, text)
	}
	return Source{}, fmt.Errorf("%w: there is no file or folder %q, and it is not a repository's address either (https://…, git@host:…, owner/repo)", ErrNotFound, text)
}

// ErrNotFound marks a source that does not exist.
var ErrNotFound = errors.New("source not found")

func parseLocal(text, dir string) (Source, bool, error) {
	abs := text
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(dir, text)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return Source{}, false, nil //nolint:nilerr // it is no path then, and may be an address
	}
	if info.IsDir() {
		return Source{Kind: Local, Location: filepath.Clean(abs)}, true, nil
	}
	if !info.Mode().IsRegular() {
		return Source{}, true, usagef("%q is neither a folder nor a file", text)
	}
	if _, err := archiveFormat(abs); err != nil {
		return Source{}, true, err
	}
	return Source{Kind: Archive, Location: filepath.Clean(abs)}, true, nil
}

// hosted returns the https address of a repository at a known host; rest may end in #ref.
func hosted(host, rest, text string) (Source, error) {
	rest, ref, _ := strings.Cut(rest, "#")
	name := strings.TrimSuffix(strings.Trim(rest, "/"), ".git")
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if p == "" || p == "." || p == ".." || strings.HasPrefix(p, "-") {
			return Source{}, usagef("%q does not name a repository; write %s:owner/repo", text, strings.TrimSuffix(host, ".com"))
		}
	}
	if len(parts) < 2 || host == "github.com" && len(parts) > 2 {
		return Source{}, usagef("%q does not name a repository; write owner/repo, and a folder inside it with --path", text)
	}
	s := Source{Kind: Git, Location: "https://" + host + "/" + name, Ref: ref}
	if host == "github.com" {
		s.GitHub = name
	}
	return s, nil
}

// ownerRepo returns "owner/repo" from the path of a GitHub address, or "".
func ownerRepo(p string) string {
	parts := strings.Split(strings.Trim(strings.TrimSuffix(p, ".git"), "/"), "/")
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

// cleanSubdir refuses a folder outside the source.
func cleanSubdir(sub string) (string, error) {
	if sub == "" {
		return "", nil
	}
	clean := path.Clean(strings.ReplaceAll(sub, `\`, "/"))
	if clean == "." {
		return "", nil
	}
	if !filepath.IsLocal(filepath.FromSlash(clean)) || strings.HasPrefix(clean, "-") {
		return "", usagef("the folder %q does not lie inside the source; give its path from the top, without ..", sub)
	}
	if first, _, _ := strings.Cut(clean, "/"); strings.EqualFold(first, ".git") {
		return "", usagef("the folder %q is git's own, not part of the source", sub)
	}
	return clean, nil
}

// checkRef refuses what git could read as something other than a branch, tag or commit: an option, a refspec, an
// expression.
func checkRef(ref string) error {
	if ref == "" {
		return nil
	}
	bad := strings.HasPrefix(ref, "-") || strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, "/") ||
		strings.HasSuffix(ref, ".lock") || strings.Contains(ref, "..") || strings.Contains(ref, "@{") ||
		strings.ContainsAny(ref, " ~^:?*[\\+")
	if bad {
		return usagef("%q is not the name of a branch, a tag or a commit", ref)
	}
	return nil
}

// String returns the source for people. It contains no secrets, because Parse refuses them.
func (s Source) String() string {
	text := s.Location
	if s.Subdir != "" {
		text += ", folder " + s.Subdir
	}
	if s.Ref != "" {
		text += ", at " + s.Ref
	}
	return text
}
