package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// Options of Fetch and Newest; nil means the zero value.
type Options struct {
	Limits *Limits
	// Progress gets git's reports of long transfers; nil for none.
	Progress io.Writer
	// Interactive lets git and ssh ask for a password on the terminal.
	Interactive bool
	// GitHubAPI is the base address of the releases API; "" means GITHUB_API_URL, or GitHub's.
	GitHubAPI string
	// Keep fetches by the source's Kind, as updates do: never the repository instead of a release, nor a release
	// instead of the repository. Otherwise the newest release of a repository is taken, if it has one.
	Keep bool
	// Warn is told what the user should know although nothing failed; nil for nobody.
	Warn func(string)
}

func (o *Options) orDefault() *Options {
	v := Options{}
	if o != nil {
		v = *o
	}
	if v.Warn == nil {
		v.Warn = func(string) {}
	}
	return &v
}

// Fetched is the result of Fetch.
type Fetched struct {
	// Source is the request. Its Kind is Release if a release was taken.
	Source Source `json:"source"`
	// Dir is the extension's folder, absolute, inside the folder that Fetch was given.
	Dir string `json:"-"`
	// Commit is git's commit id; "" for none.
	Commit string `json:"commit,omitempty"`
	// Tag is the release's tag; "" for none.
	Tag string `json:"tag,omitempty"`
}

// Fetch fetches s into a new folder inside work, an existing folder that the caller removes in any case. The result
// has passed checkTree. A linked source is not copied.
func Fetch(ctx context.Context, s Source, work string, opts *Options) (Fetched, error) {
	o := opts.orDefault()
	if s.Kind == Link {
		return Fetched{Source: s, Dir: s.Location}, nil
	}
	tree := filepath.Join(work, "fetched")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return Fetched{}, err
	}
	got := Fetched{Source: s}
	var err error
	switch s.Kind {
	case Local:
		if _, err := os.Lstat(filepath.Join(s.Location, manifest.FileName)); errors.Is(err, fs.ErrNotExist) && isDir(s.Location) {
			got.Dir = tree // not an extension, as the caller will report; do not copy a whole home folder for that
			return got, nil
		}
		err = copyTree(s.Location, tree, o.Limits)
		got.Dir = tree
	case Archive:
		if err = unpack(s.Location, tree, o.Limits); err == nil {
			got.Dir, err = top(tree, s.Subdir)
		}
	case Git, Release:
		err = fetchRemote(ctx, &got, work, tree, o)
	default:
		err = fmt.Errorf("a source of kind %q cannot be fetched", s.Kind)
	}
	if err != nil {
		return Fetched{}, err
	}
	if info, err := os.Stat(got.Dir); err != nil || !info.IsDir() {
		return Fetched{}, fmt.Errorf("%w: %s has no folder %q", ErrNotFound, s.Location, s.Subdir)
	}
	if err := dropForeign(got.Dir, got.Commit != "" && s.Subdir == ""); err != nil {
		return Fetched{}, err
	}
	return got, checkTree(got.Dir, o.Limits)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fetchRemote takes a release if GitHub has one, as the CLI does, otherwise the repository. A release that exists but
// cannot be fetched completely is an error: the repository may contain unreleased code.
func fetchRemote(ctx context.Context, got *Fetched, work, tree string, o *Options) error {
	s := &got.Source
	if s.Kind == Release || !o.Keep && s.GitHub != "" && s.Subdir == "" && !hexCommit().MatchString(s.Ref) {
		hub := newGitHub(o)
		rel, err := hub.find(ctx, s.GitHub, s.Ref, s.PreRelease)
		switch {
		case err == nil:
			return fetchRelease(ctx, got, hub, rel, work, tree, o)
		case ctx.Err() != nil:
			return err
		case s.Kind == Release:
			return gone(*s, err)
		case !errors.Is(err, errNoRelease):
			o.Warn(fmt.Sprintf("nobody could say whether there is a release (%v); fetching the repository with git instead, from which updates will come as well", err))
		}
	}
	g, err := newGit(*s, o)
	if err != nil {
		return err
	}
	if strings.HasPrefix(s.Location, "http://") {
		o.Warn("the address is not encrypted: anybody on the way can change what arrives; use https if the server has it")
	}
	s.Kind = Git
	if got.Commit, err = g.clone(ctx, s.Location, s.Ref, s.Subdir, tree, o.Limits.orDefault()); err != nil {
		return err
	}
	got.Dir = filepath.Join(tree, filepath.FromSlash(s.Subdir))
	if _, err := os.Lstat(filepath.Join(tree, ".gitmodules")); err == nil {
		o.Warn("the repository uses git submodules, which are not fetched: files in them are missing from the extension")
	}
	return inside(tree, s.Subdir)
}

// inside refuses a subfolder that is reached through a link out of the tree.
func inside(tree, sub string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	if sub == "" {
		return nil
	}
	switch _, err := root.Stat(filepath.FromSlash(sub)); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no folder %q in it", ErrNotFound, sub)
	case err != nil:
		return fmt.Errorf("%w: the folder %q in it cannot be used: %v", ErrNotFound, sub, err)
	}
	return nil
}

// gone explains that a release no longer exists, if that is the error.
func gone(s Source, err error) error {
	if errors.Is(err, errNoRelease) {
		return fmt.Errorf("%w: %s has no release any more; to follow the repository instead, uninstall the extension and install it with --ref BRANCH", ErrNotFound, s)
	}
	return err
}

// errDamaged marks a download that differs from what was published.
var errDamaged = errors.New("the download is damaged")

func fetchRelease(ctx context.Context, got *Fetched, hub *github, rel release, work, tree string, o *Options) error {
	packed := filepath.Join(work, "release")
	limits := o.Limits.orDefault()
	if err := hub.download(ctx, rel, packed, limits.Archive); err != nil {
		return fmt.Errorf("the release %q of %s cannot be fetched: %w; try again later, or name a branch with --ref to take the repository", rel.Tag, got.Source.GitHub, err)
	}
	err := unpack(packed, tree, o.Limits)
	switch {
	case errors.Is(err, ErrRefused):
		return err
	case err != nil:
		return fmt.Errorf("the release %q of %s cannot be used: %w (%v); try again later", rel.Tag, got.Source.GitHub, errDamaged, bare(err))
	}
	got.Source.Kind, got.Tag = Release, rel.Tag
	got.Dir, err = top(tree, "")
	return err
}

// bare returns an error of unpack without the path of its working folder.
func bare(err error) error {
	if errors.Is(err, ErrUsage) {
		return errors.New("it is neither a .zip nor a .tar.gz archive")
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// top returns the extension's folder in an unpacked tree: the requested subfolder, the top, or the only folder in it,
// as in packed sources.
func top(tree, sub string) (string, error) {
	if sub != "" {
		return filepath.Join(tree, filepath.FromSlash(sub)), inside(tree, sub)
	}
	if _, err := os.Lstat(filepath.Join(tree, manifest.FileName)); err == nil {
		return tree, nil
	}
	entries, err := os.ReadDir(tree)
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "__MACOSX" || e.Name() == ".DS_Store" }) // macOS adds its own files to archives
	if len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(tree, entries[0].Name()), nil
	}
	return tree, nil
}

// dropForeign removes what is not extension content (manifest.IsContent) from a fetched tree. It keeps the .git that
// pollux's git made for a whole repository: the CLI's update needs it.
func dropForeign(dir string, ownGit bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." || manifest.IsContent(name) {
			return err
		}
		if !ownGit || name != ".git" {
			if err := root.RemoveAll(filepath.FromSlash(name)); err != nil {
				return err
			}
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// Newest returns what Fetch would bring now, without fetching it: a commit or a tag. For folders and archives it
// returns "": only their content can tell.
func Newest(ctx context.Context, s Source, opts *Options) (string, error) {
	o := opts.orDefault()
	switch s.Kind {
	case Release:
		rel, err := newGitHub(o).find(ctx, s.GitHub, s.Ref, s.PreRelease)
		if err != nil {
			return "", gone(s, err)
		}
		return rel.Tag, nil
	case Git:
		g, err := newGit(s, o)
		if err != nil {
			return "", err
		}
		return g.remote(ctx, s.Location, s.Ref)
	}
	return "", nil
}

// FromMetadata returns the source recorded in the CLI's install metadata, for an extension that pollux did not
// install.
func FromMetadata(kind, location, ref string, pre bool) (Source, error) {
	switch Kind(kind) {
	case Local, Link:
		if !filepath.IsAbs(location) {
			return Source{}, usagef("the recorded source %q is not an absolute path", location)
		}
		if info, err := os.Stat(location); err == nil && info.Mode().IsRegular() {
			return Source{Kind: Archive, Location: location}, nil
		}
		return Source{Kind: Kind(kind), Location: filepath.Clean(location)}, nil
	case Git, Release:
		if !strings.Contains(location, ":") {
			return Source{}, usagef("the recorded source %q is no address of a repository", location)
		}
		s, err := Parse(location, string(filepath.Separator), Wish{Ref: ref, PreRelease: pre})
		if err == nil && s.Kind == Git {
			s.Kind = Kind(kind)
		}
		return s, err
	}
	return Source{}, usagef("the recorded type %q is unknown", kind)
}
