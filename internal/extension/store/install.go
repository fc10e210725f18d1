package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
)

// Plan is an install or update that is fetched and checked. It changes nothing until Apply. Always call Close.
type Plan struct {
	Manifest *manifest.Manifest
	// Findings are about the manifest and the other files, each File relative to the extension's folder. There is
	// never an Error.
	Findings manifest.Findings
	Fetched  source.Fetched
	Metadata Metadata
	// Hash is the hash of the content; "" for a link.
	Hash string
	// Old is the installed extension to replace; nil if there is none.
	Old *Extension
	// UpToDate says that an update would change nothing.
	UpToDate bool
	// Older says that the update has an older version than the installed extension. Moved says that it comes from
	// another source.
	Older, Moved bool

	store   *Store
	staging *staging
	tree    *manifest.Tree
}

// PlanOptions are the options of a plan; nil means the zero value.
type PlanOptions struct {
	AutoUpdate bool // recorded for the CLI, which updates such extensions automatically
	// Replace lets an install replace an installed extension of the same name, which is then Plan.Old.
	Replace bool
	Fetch   *source.Options
}

// PlanInstall fetches a source and checks everything that can be checked before the user is asked.
func (s *Store) PlanInstall(ctx context.Context, src source.Source, opts *PlanOptions) (*Plan, error) {
	p, err := s.plan(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	if opts != nil && opts.Replace {
		p.Old, err = s.replaceable(p.Manifest.Name)
	}
	if err == nil && p.Old == nil {
		err = s.checkFree(p.Manifest.Name)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	if p.Old != nil {
		p.compare()
	}
	return p, nil
}

// replaceable returns the extension that a new one of this name would replace. It is nil if there is none, more than
// one, or one whose name differs slightly.
func (s *Store) replaceable(name string) (*Extension, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x *Extension) bool {
		return !strings.EqualFold(x.Name, name) && !strings.EqualFold(filepath.Base(x.Folder), name)
	})
	if len(all) != 1 || all[0].Name != name {
		return nil, nil //nolint:nilnil // none is a usual answer
	}
	return all[0], nil
}

// compare says how the plan differs from the installed extension that it would replace.
func (p *Plan) compare() {
	x := p.Old
	order, known := manifest.CompareVersions(p.Manifest.Version, x.Manifest.Version)
	p.Older = known && order < 0
	if x.Metadata == nil {
		p.Moved = true
		return
	}
	p.Moved = p.Metadata.Source != x.Metadata.Source || p.Metadata.Type != x.Metadata.Type
	if x.Problem != "" || *x.Metadata != p.Metadata {
		return
	}
	if p.Metadata.Type == string(source.Link) {
		p.UpToDate = true
		return
	}
	hash, err := manifest.HashTree(x.Dir)
	p.UpToDate = err == nil && hash == p.Hash && p.Fetched.Commit == x.Commit()
}

// checkFree refuses a name that an extension or folder already has. Case is ignored, because some file systems ignore
// it.
func (s *Store) checkFree(name string) error {
	entries, err := os.ReadDir(s.Dir())
	if err != nil && exists(s.Dir()) {
		return err
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), name) {
			if path := filepath.Join(s.Dir(), e.Name()); !isFolder(path) {
				return fmt.Errorf("%w: %q, which is no extension: a file, or a link that leads nowhere; remove it first", ErrExists, path)
			}
			return fmt.Errorf("%w: %q; update it (pollux extensions update %s), or replace it with --force", ErrExists, e.Name(), e.Name())
		}
	}
	all, err := s.List()
	if err != nil {
		return err
	}
	for _, x := range all {
		if strings.EqualFold(x.Name, name) {
			return fmt.Errorf("%w: %q in the folder %q; uninstall it first (pollux extensions uninstall %s)", ErrExists, x.Name, x.Folder, x.Folder)
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// plan fetches into a staging folder and checks the result.
func (s *Store) plan(ctx context.Context, src source.Source, opts *PlanOptions) (_ *Plan, err error) {
	o := PlanOptions{}
	if opts != nil {
		o = *opts
	}
	if err := s.checkSource(src); err != nil {
		return nil, err
	}
	var st *staging
	if err := s.locked(ctx, func() (err error) { st, err = s.newStaging(); return err }); err != nil {
		return nil, err
	}
	p := &Plan{store: s, staging: st}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if err := s.fault("fetch"); err != nil {
		return nil, err
	}
	if p.Fetched, err = source.Fetch(ctx, src, st.dir, o.Fetch); err != nil {
		return nil, err
	}
	if err = s.fault("fetched"); err != nil {
		return nil, err
	}
	p.Metadata = metadataFor(p.Fetched, o.AutoUpdate)
	if err = s.readPolicy().check(&p.Metadata, s.workDir); err != nil {
		return nil, err
	}
	p.Manifest, p.Findings, err = manifest.Load(p.Fetched.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no extension: it has no %s at its top; if it lies in a folder of it, name that with --path", src, manifest.FileName)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no extension: %w", src, readable(err, p.Fetched))
	}
	if err = p.Findings.Err(); err != nil {
		return nil, fmt.Errorf("the extension is not valid: %w", readable(err, p.Fetched))
	}
	if err = p.judgeFiles(); err != nil {
		return nil, err
	}
	return p, p.prepare()
}

// judgeFiles adds the findings about the files beside the manifest, such as a command that Gemini CLI would skip.
func (p *Plan) judgeFiles() error {
	dir := p.Fetched.Dir
	more, err := manifest.Content(dir)
	if err != nil {
		return readable(err, p.Fetched)
	}
	p.Findings = append(p.Findings, more...)
	for i, f := range p.Findings {
		if rel, err := filepath.Rel(dir, f.File); err == nil {
			p.Findings[i].File = rel
		}
	}
	return nil
}

// readable replaces the temporary staging folder in an error by the source, which the user knows.
func readable(err error, f source.Fetched) error {
	text := strings.ReplaceAll(err.Error(), f.Dir+string(filepath.Separator), "")
	text = strings.ReplaceAll(text, f.Dir, f.Source.String())
	if text == err.Error() {
		return err
	}
	return &shortened{text, err}
}

// shortened is an error with another text.
type shortened struct {
	text string
	err  error
}

func (e *shortened) Error() string { return e.text }
func (e *shortened) Unwrap() error { return e.err }

// checkSource applies the rules that need no fetching.
func (s *Store) checkSource(src source.Source) error {
	m := metadataFor(source.Fetched{Source: src}, false)
	if err := s.readPolicy().check(&m, s.workDir); err != nil {
		return err
	}
	if src.Kind == source.Local && s.TrustOf(src.Location) == clisettings.Distrusted {
		return fmt.Errorf("%w: Gemini CLI's trusted folders say not to trust %q; change that with /permissions in Gemini CLI", errPolicy, src.Location)
	}
	return nil
}

// prepare turns the staging folder's "new" into what goes into the extensions folder.
func (p *Plan) prepare() error {
	fresh := p.staging.path("new")
	if p.Fetched.Source.Kind == source.Link {
		if err := os.Mkdir(fresh, 0o755); err != nil {
			return err
		}
	} else {
		var err error
		if p.tree, err = manifest.ReadTree(p.Fetched.Dir); err != nil {
			return readable(err, p.Fetched)
		}
		p.Hash = p.tree.Hash()
		if err := os.Rename(p.Fetched.Dir, fresh); err != nil {
			return err
		}
		p.Fetched.Dir = fresh
	}
	return p.Metadata.write(fresh)
}

// Close removes what was fetched. After Apply there is nothing left to remove.
func (p *Plan) Close() {
	if p != nil && p.staging != nil {
		p.staging.close()
	}
}

// Apply carries out the plan: completely or, with an error, not at all.
func (p *Plan) Apply(ctx context.Context) error {
	s := p.store
	c := &change{
		Op: "install", Name: p.Manifest.Name, Base: p.Manifest.Name, Stage: p.staging.dir, Hash: p.Hash, tree: p.tree,
		Record: &Record{
			Name: p.Manifest.Name, Version: p.Manifest.Version, Fetched: p.Fetched, Metadata: p.Metadata,
			Hash: p.Hash, Installed: s.now().UTC().Truncate(1e9),
		},
	}
	if err := s.fault("prepared"); err != nil {
		return err
	}
	return s.locked(ctx, func() error {
		if p.Old == nil {
			if err := s.checkFree(c.Name); err != nil {
				return err
			}
			return s.do(c)
		}
		now, err := s.Get(p.Old.Folder)
		if err != nil {
			return err
		}
		if now.Manifest.Version != p.Old.Manifest.Version || now.Commit() != p.Old.Commit() {
			return fmt.Errorf("%q was changed by another program meanwhile; try again", p.Old.Name)
		}
		c.Op, c.Base = "update", filepath.Base(p.Old.Folder)
		if err := s.carrySettings(p.Old.Folder, c.fresh()); err != nil {
			return err
		}
		return s.do(c)
	})
}

// carrySettings copies the user's values, which no source contains. It follows no link: the author could have made it
// lead to any file of the user's.
func (s *Store) carrySettings(from, to string) error {
	data, err := readOwnEnv(filepath.Join(from, ".env"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, safefile.ErrNotPrivate):
		s.warn(fmt.Sprintf("the settings in %q are not carried over: %v", from, err))
		return nil
	case err != nil:
		return fmt.Errorf("the settings in %q cannot be carried over: %w", from, err)
	}
	return os.WriteFile(filepath.Join(to, ".env"), data, 0o600)
}

// PlanUpdate fetches the update of an installed extension. If the source can cheaply tell that nothing is new,
// nothing is fetched and the plan is UpToDate.
func (s *Store) PlanUpdate(ctx context.Context, x *Extension, opts *PlanOptions) (*Plan, error) {
	o := PlanOptions{}
	if opts != nil {
		o = *opts
	}
	src, moved, err := s.updateSource(ctx, x, o.Fetch)
	if err != nil {
		return nil, err
	}
	if !moved { // a source stays what the user chose
		kept := source.Options{}
		if o.Fetch != nil {
			kept = *o.Fetch
		}
		kept.Keep = true
		o.Fetch = &kept
	}
	same := &Plan{Old: x, UpToDate: true, Manifest: x.Manifest}
	o.AutoUpdate = o.AutoUpdate || x.Metadata.AutoUpdate
	have := x.Metadata.ReleaseTag
	if src.Kind == source.Git {
		have = x.Commit()
	}
	if !moved && have != "" && x.Problem == "" {
		newest, err := source.Newest(ctx, src, o.Fetch)
		if err != nil {
			return nil, err
		}
		if newest == have || src.Kind == source.Git && strings.HasPrefix(have, newest) && len(newest) >= 7 {
			return same, nil
		}
	}
	p, err := s.plan(ctx, src, &o)
	if err != nil {
		return nil, err
	}
	p.Old = x
	if p.Manifest.Name != x.Name {
		defer p.Close()
		return nil, fmt.Errorf("the source of %q now holds an extension called %q; install that one and uninstall %q", x.Name, p.Manifest.Name, x.Name)
	}
	if p.compare(); p.UpToDate {
		p.Close()
		return same, nil
	}
	return p, nil
}

// updateSource returns the source of an update: the recorded one or, if it answers, the one that the extension says
// it moved to.
func (s *Store) updateSource(ctx context.Context, x *Extension, o *source.Options) (src source.Source, moved bool, err error) {
	if src, err = x.Source(); err != nil {
		return src, false, err
	}
	if src.Kind == source.Link {
		if !exists(src.Location) {
			return src, false, fmt.Errorf("%w: the linked folder %q is gone; bring it back, or uninstall %s", source.ErrNotFound, src.Location, x.Name)
		}
		return src, false, errLinked
	}
	if (src.Kind == source.Local || src.Kind == source.Archive) && !exists(src.Location) {
		return src, false, fmt.Errorf("%w: it was installed from %q, which is gone; bring it back, or install it from elsewhere (pollux extensions install SOURCE --force)", source.ErrNotFound, src.Location)
	}
	to := x.Manifest.MigratedTo
	if to == "" || to == x.Metadata.Source {
		return src, false, nil
	}
	next, err := source.Parse(to, s.workDir, source.Wish{Ref: src.Ref, PreRelease: src.PreRelease})
	if err != nil || next.Kind != source.Git {
		s.warn(fmt.Sprintf("%s says that it has moved to %q, which is no repository; its old source is used", x.Name, words.Printable(to)))
		return src, false, nil //nolint:nilerr // told, and not in the way of an update
	}
	if _, err := source.Newest(ctx, next, o); err != nil {
		s.warn(fmt.Sprintf("%s says that it has moved to %q, which cannot be reached (%v); its old source is used", x.Name, words.Printable(to), err))
		return src, false, nil
	}
	return next, true, nil
}

// errLinked marks an update of a folder under development.
var errLinked = errors.New("it is linked: it is always what its folder holds")

// IsLinked says whether an update failed only because a linked extension has nothing to update.
func IsLinked(err error) bool { return errors.Is(err, errLinked) }

// Uninstall removes an extension, also a broken one or a link. It never removes the folder that a link points to.
func (s *Store) Uninstall(ctx context.Context, x *Extension) error {
	return s.locked(ctx, func() error {
		if !exists(x.Folder) {
			return &NotFoundError{Name: x.Name}
		}
		st, err := s.newStaging()
		if err != nil {
			return err
		}
		defer st.close()
		all, err := s.List()
		if err != nil {
			return err
		}
		shared := slices.ContainsFunc(all, func(y *Extension) bool { return y.Name == x.Name && y.Folder != x.Folder })
		return s.do(&change{Op: "uninstall", Name: x.Name, Base: filepath.Base(x.Folder), Stage: st.dir, Shared: shared})
	})
}

// SetEnabled enables or disables an extension for the user or in the working folder.
func (s *Store) SetEnabled(ctx context.Context, name string, scope Scope, on bool) error {
	return s.locked(ctx, func() error {
		rules, err := s.readEnablement()
		if err != nil {
			return err
		}
		rules.change(name, scope, on, s.home, s.workDir)
		return rules.write()
	})
}
