package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

// Extension is one installed extension, as it was on disk when it was read.
type Extension struct {
	// Name is the manifest's name, or the folder's if the manifest has none.
	Name string
	// Folder is the absolute path in the extensions folder. Dir is where the content lies, which differs only for a
	// link.
	Folder, Dir string
	// Manifest is never nil; with a Problem it has what could be read.
	Manifest *manifest.Manifest
	Findings manifest.Findings
	// Metadata is nil if there is none, which means to the CLI that it cannot be updated.
	Metadata *Metadata
	// Record is nil if pollux did not install it.
	Record *Record
	// EnabledUser and EnabledHere say whether it is enabled in the home folder and in the working folder.
	EnabledUser, EnabledHere bool
	// Problem says why it does not load, and what to do; "" if it loads.
	Problem string

	rules *enablement // as read together with the extension
}

// EnabledIn says whether it is enabled in a folder, given as an absolute path.
func (x *Extension) EnabledIn(dir string) bool { return x.rules.enabled(x.Name, dir) }

// Places returns the folders, absolute, that rules about it name, except the home folder and the root.
func (x *Extension) Places() []string { return x.rules.places(x.Name) }

// ID returns the CLI's id of the extension, which is part of its keychain entries.
func (x *Extension) ID() string { return x.Metadata.id(x.Name) }

// Linked says whether it is a folder under development.
func (x *Extension) Linked() bool {
	return x.Metadata != nil && x.Metadata.Type == string(source.Link)
}

// InstalledBy names the program that installed it.
func (x *Extension) InstalledBy() string {
	switch {
	case x.Bridge():
		return "pollux (its bridge)"
	case x.Metadata == nil:
		return "hand (it has no install metadata)"
	case x.foreign():
		return "Gemini CLI"
	}
	return "pollux"
}

// Commit returns the installed commit, "" if unknown.
func (x *Extension) Commit() string {
	if x.Record != nil && !x.foreign() {
		return x.Record.Fetched.Commit
	}
	return source.HeadCommit(x.Folder)
}

// Source returns where updates come from.
func (x *Extension) Source() (source.Source, error) {
	if x.Metadata == nil {
		return source.Source{}, fmt.Errorf("%q has no record of where it came from; uninstall it and install it from its source", x.Name)
	}
	if x.Record != nil && x.Record.Metadata == *x.Metadata {
		return x.Record.Fetched.Source, nil
	}
	return source.FromMetadata(x.Metadata.Type, x.Metadata.Source, x.Metadata.Ref, x.Metadata.AllowPreRelease)
}

// List reads every extension, including broken ones, sorted by name. It is an error if the folder cannot be read; a
// missing folder is an empty list.
func (s *Store) List() ([]*Extension, error) {
	s.recoverIfIdle()
	entries, err := os.ReadDir(s.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the extensions: %w", err)
	}
	rules, err := s.readEnablement()
	if err != nil {
		s.warn(err.Error() + "; until then every extension counts as enabled")
		rules = &enablement{home: s.home}
	}
	policy := s.readPolicy()
	all := make([]*Extension, len(entries))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(entries)) { // most of the time goes into reading manifests
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				all[i] = s.readOne(entries[i], rules, policy)
			}
		})
	}
	wg.Wait()
	all = slices.DeleteFunc(all, func(x *Extension) bool { return x == nil })
	slices.SortFunc(all, func(a, b *Extension) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Folder, b.Folder)
	})
	markTwins(all)
	return all, nil
}

// markTwins finds names that two manifests have. The CLI does not start with them.
func markTwins(all []*Extension) {
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Name == b.Name {
			for _, x := range []*Extension{a, b} {
				x.Problem = fmt.Sprintf("two folders hold an extension of this name, which keeps Gemini CLI from starting: %s and %s; remove one of them (pollux extensions uninstall takes a folder's path too)", a.Folder, b.Folder)
			}
		}
	}
}

// readOne is read, but a panic in pollux only makes that extension a broken one.
func (s *Store) readOne(entry fs.DirEntry, rules *enablement, p *policy) (x *Extension) {
	defer func() {
		if r := recover(); r != nil {
			x = &Extension{
				Name: entry.Name(), Folder: filepath.Join(s.Dir(), entry.Name()), Manifest: &manifest.Manifest{}, rules: rules,
				Problem: fmt.Sprintf("pollux made a mistake in reading it (%v); please report it", r),
			}
			x.Dir = x.Folder
		}
	}()
	return s.read(entry, rules, p)
}

// read reads the extension in one folder; nil if the CLI would ignore the folder.
func (s *Store) read(entry fs.DirEntry, rules *enablement, p *policy) *Extension {
	base := entry.Name()
	x := &Extension{Name: base, Folder: filepath.Join(s.Dir(), base)}
	if !entry.IsDir() { // a link to a folder counts
		if info, err := os.Stat(x.Folder); err != nil || !info.IsDir() {
			return nil
		}
	}
	var err error
	x.Dir = x.Folder
	x.Metadata = readMetadata(x.Folder)
	if x.Linked() {
		x.Dir = x.Metadata.Source
	}
	load := manifest.Load
	if x.Bridge() {
		load = manifest.LoadOwn
	}
	x.Manifest, x.Findings, err = load(x.Dir)
	switch {
	case x.Linked() && errors.Is(err, fs.ErrNotExist) && !exists(x.Dir):
		x.Problem = fmt.Sprintf("the linked folder %q is gone; bring it back, or uninstall %s", x.Dir, base)
	case err != nil && x.Linked():
		x.Problem = fmt.Sprintf("the linked folder %q cannot be read (%v); bring it back, or uninstall %s", x.Dir, safefile.Cause(err), base)
	case errors.Is(err, fs.ErrNotExist):
		x.Problem = fmt.Sprintf("%q holds no %s; uninstall %s", x.Folder, manifest.FileName, base)
	case err != nil:
		x.Problem = safefile.Cause(err).Error()
	case x.Findings.Err() != nil:
		x.Problem = x.Findings.Err().Error()
	}
	if x.Manifest == nil {
		x.Manifest = &manifest.Manifest{}
	}
	if validName(x.Manifest.Name) {
		x.Name = x.Manifest.Name
	}
	if x.Problem == "" {
		if err := p.check(x.Metadata, s.workDir); err != nil {
			x.Problem = err.Error()
		}
	}
	x.Record = s.readRecord(x.Name)
	x.EnabledUser, x.EnabledHere, x.rules = rules.enabled(x.Name, s.home), rules.enabled(x.Name, s.workDir), rules
	return x
}

// validName says whether the CLI accepts name: letters, digits and dashes.
func validName(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	})
}

// Get finds an extension by name (in any case, as in the CLI), by its folder's path or by its source. Otherwise the
// error is a *NotFoundError.
func (s *Store) Get(name string) (*Extension, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	return Find(all, name)
}

// Find is Get for a list that was already read.
func Find(all []*Extension, name string) (*Extension, error) {
	same := []func(*Extension) bool{
		func(x *Extension) bool { return x.Name == name && x.Name == filepath.Base(x.Folder) },
		func(x *Extension) bool { return x.Name == name },
		func(x *Extension) bool { return strings.EqualFold(x.Name, name) },
		func(x *Extension) bool { return strings.EqualFold(filepath.Base(x.Folder), name) },
		func(x *Extension) bool { return x.Folder == name || x.Folder == filepath.Clean(name) },
		func(x *Extension) bool { return x.Metadata != nil && strings.EqualFold(x.Metadata.Source, name) },
	}
	for _, is := range same {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i], nil
		}
	}
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.Name
	}
	return nil, &NotFoundError{Name: name, Nearest: words.Nearest(name, names)}
}
