package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A change is one prepared install, update or uninstall. It is in the journal from before its first step until after
// its last:
//
//	journal   what is going to happen is on disk
//	place     the folder is renamed (install), exchanged (update) or moved away (uninstall)
//	settle    enablement, record and the CLI's integrity record follow
//	done      the journal is removed
//	clean     what is left of the old state is removed
//
// If pollux is killed before place, the next pollux forgets the change; after place, the next one settles it. The CLI
// sees the old state before place and the new one after it.
type change struct {
	Op    string `json:"op"` // install, update or uninstall
	Name  string `json:"name"`
	Base  string `json:"base"`  // the folder's name in the extensions folder
	Stage string `json:"stage"` // absolute; holds "new", the prepared folder, and "old", the one moved away
	// Hash is the hash of new's content. After a crash it tells which of two exchanged folders is which.
	Hash   string  `json:"hash,omitempty"`
	Record *Record `json:"record,omitempty"`
	// Shared says that another folder has an extension of the same name, which owns the rules and records.
	Shared bool `json:"shared,omitempty"`

	tree *manifest.Tree
}

func (s *Store) journalFile() string { return s.own("journal.json") }

func (c *change) fresh() string { return filepath.Join(c.Stage, "new") }
func (c *change) gone() string  { return filepath.Join(c.Stage, "old") }

// do makes a change, or leaves everything as it was and returns an error. The lock is held.
func (s *Store) do(c *change) error {
	if c.Op != "uninstall" {
		if err := c.writeTree(); err != nil {
			return err
		}
		if err := syncTree(c.Stage); err != nil {
			return fmt.Errorf("writing to the disk: %w", err)
		}
	}
	if err := s.fault("journal"); err != nil {
		return err
	}
	if err := safefile.Write(s.journalFile(), indented(c), nil); err != nil {
		return err
	}
	err := s.fault("place")
	if err == nil {
		err = s.place(c)
	}
	if err != nil {
		s.forget()
		return err
	}
	around, err := keep(s.around(c)...)
	if err == nil {
		err = s.updateAround(c)
	}
	if err != nil {
		if undo := errors.Join(around.restore(), s.unplace(c)); undo != nil {
			// The journal stays, so that the next pollux settles again.
			return fmt.Errorf("%w (and it could not be undone: %v; the next pollux will finish it)", err, undo)
		}
		s.forget()
		return err
	}
	return s.finish(c)
}

// place makes the one step that the CLI sees.
func (s *Store) place(c *change) error {
	target := s.folder(c.Base)
	var err error
	switch c.Op {
	case "install":
		if exists(target) {
			return fmt.Errorf("%w: the folder %q", ErrExists, target)
		}
		err = os.Rename(c.fresh(), target)
	case "update":
		err = s.exchange(c.fresh(), target)
		if errors.Is(err, errors.ErrUnsupported) || isInvalid(err) {
			err = s.replace(c)
		}
	case "uninstall":
		err = os.Rename(target, c.gone())
	}
	if err != nil {
		return fmt.Errorf("placing %q: %w", target, safefile.Cause(err))
	}
	return syncDir(s.Dir())
}

// replace is swap in two steps, for file systems that cannot swap.
func (s *Store) replace(c *change) error {
	target := s.folder(c.Base)
	if err := os.Rename(target, c.gone()); err != nil {
		return err
	}
	err := s.fault("between")
	if err == nil {
		err = os.Rename(c.fresh(), target)
	}
	if err != nil {
		return errors.Join(err, os.Rename(c.gone(), target))
	}
	return nil
}

func isInvalid(err error) bool { return errors.Is(err, fs.ErrInvalid) || isEINVAL(err) }

// unplace undoes place.
func (s *Store) unplace(c *change) error {
	target := s.folder(c.Base)
	switch {
	case c.Op == "install":
		return os.Rename(target, c.fresh())
	case c.Op == "uninstall":
		return os.Rename(c.gone(), target)
	case exists(c.gone()): // it was replaced in two steps
		return errors.Join(os.Rename(target, c.fresh()), os.Rename(c.gone(), target))
	}
	return s.exchange(c.fresh(), target)
}

// updateAround updates the files around the folder. It may run again after a crash, so repeating each part changes nothing.
func (s *Store) updateAround(c *change) error {
	if c.Shared {
		return nil
	}
	if err := s.fault("enablement"); err != nil {
		return err
	}
	if err := s.updateEnablement(c); err != nil {
		return err
	}
	if err := s.fault("record"); err != nil {
		return err
	}
	if err := s.updateRecord(c); err != nil {
		return err
	}
	if err := s.fault("integrity"); err != nil {
		return err
	}
	if c.Op == "uninstall" {
		s.fixIntegrity(c.Name, nil)
	} else {
		s.fixIntegrity(c.Name, &c.Record.Metadata)
	}
	return nil
}

func (s *Store) updateEnablement(c *change) error {
	if c.Op == "update" {
		return nil
	}
	rules, err := s.readEnablement()
	if err != nil {
		s.warn(err.Error() + "; no rule was changed")
		return nil //nolint:nilerr // without rules it is enabled, which an install wants
	}
	if known := rules.remove(c.Name); c.Op == "uninstall" {
		if !known {
			return nil
		}
	} else {
		rules.change(c.Name, User, true, s.home, s.workDir)
	}
	return rules.write()
}

// updateRecord takes over the list of hashes from the staging folder, which exists until the change is finished.
func (s *Store) updateRecord(c *change) error {
	if c.Op == "uninstall" {
		s.dropRecord(c.Name)
		return nil
	}
	if err := safefile.PrivateDir(s.own("records")); err != nil {
		return err
	}
	data, err := readAtMost(c.treeFile(), maxOwnFile)
	if errors.Is(err, fs.ErrNotExist) {
		s.dropRecord(c.Name) // a link has no tree
	} else if err != nil {
		return err
	} else if err := safefile.Write(s.treeFile(c.Name), data, nil); err != nil {
		return err
	}
	return s.writeRecord(c.Record)
}

func (c *change) treeFile() string { return filepath.Join(c.Stage, "tree.json") }

func (c *change) writeTree() error {
	if c.tree == nil {
		return nil
	}
	data, err := json.Marshal(c.tree)
	if err != nil {
		return err
	}
	return os.WriteFile(c.treeFile(), data, 0o600)
}

// around lists the files that updateAround changes.
func (s *Store) around(c *change) []string {
	return []string{s.enablementFile(), s.recordFile(c.Name), s.treeFile(c.Name), s.integrityFile()}
}

// finish removes the journal, and then what is left of the old state.
func (s *Store) finish(c *change) error {
	if err := s.fault("done"); err != nil {
		return err
	}
	if err := os.Remove(s.journalFile()); err != nil {
		return err
	}
	return s.fault("clean")
}

// forget removes the journal of a change that did not happen.
func (s *Store) forget() {
	if err := os.Remove(s.journalFile()); err != nil && exists(s.journalFile()) {
		s.warn(fmt.Sprintf("the journal %q could not be removed: %v", s.journalFile(), safefile.Cause(err)))
	}
}

// recover finishes or forgets the change of a dead process, and removes what dead processes prepared. The lock is
// held.
func (s *Store) recover() error {
	data, err := readSmall(s.journalFile())
	if errors.Is(err, fs.ErrNotExist) {
		s.sweep()
		return nil
	}
	var c change
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil || !c.plausible() || !filepath.IsLocal(c.Base) || filepath.Base(c.Base) != c.Base || filepath.Dir(c.Stage) != s.stagingDir() {
		return &brokenFile{s.journalFile(), "it is not a journal of this version of pollux", "delete it when no other pollux is at work"}
	}
	placed, err := s.placed(&c)
	if err != nil {
		return err
	}
	if !placed {
		s.forget()
	} else {
		if err := s.updateAround(&c); err != nil {
			return fmt.Errorf("finishing an interrupted %s of %q: %w", c.Op, c.Name, err)
		}
		if err := s.finish(&c); err != nil {
			return err
		}
	}
	s.sweep()
	return nil
}

// plausible refuses a journal that is incomplete or something else.
func (c *change) plausible() bool {
	known := c.Op == "install" || c.Op == "update" || c.Op == "uninstall"
	return known && c.Name != "" && filepath.Base(c.Name) == c.Name && (c.Op == "uninstall" || c.Record != nil)
}

// placed says whether an interrupted change reached its place step. It completes a replacement in two steps.
func (s *Store) placed(c *change) (bool, error) {
	target := s.folder(c.Base)
	switch {
	case c.Op == "install":
		return exists(target) && !exists(c.fresh()), nil
	case c.Op == "uninstall":
		return !exists(target), nil
	case exists(c.gone()) && !exists(target):
		if !exists(c.fresh()) {
			return false, os.Rename(c.gone(), target)
		}
		return true, os.Rename(c.fresh(), target)
	case exists(c.gone()):
		return true, nil
	case !exists(target) || !exists(c.fresh()):
		return false, nil // somebody else removed it
	}
	// The content tells whether the folders were exchanged. If both are equal, it does not matter.
	hash, err := manifest.HashTree(target)
	if err != nil {
		return false, fmt.Errorf("looking at %q after an interrupted update: %w", target, err)
	}
	meta := readMetadata(target)
	return hash == c.Hash && meta != nil && *meta == c.Record.Metadata, nil
}

// locked runs f with the lock held.
func (s *Store) locked(ctx context.Context, f func() error) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}
