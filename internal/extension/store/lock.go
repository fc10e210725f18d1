package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// lockWait bounds how long a change waits for another pollux. A change holds the lock only for renames and small
// files, never while it fetches or asks.
const lockWait = 30 * time.Second

// errBusy marks a change that did not happen because another pollux held the lock.
var errBusy = errors.New("another pollux is changing the extensions")

// lock takes the store's lock, finishes or undoes what a dead process left, and returns the function that releases
// the lock.
func (s *Store) lock(ctx context.Context) (func(), error) {
	if err := safefile.PrivateDir(s.own()); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.own("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the extensions: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		ok, err := safefile.TryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking the extensions (%s): %w", f.Name(), err)
		}
		if ok && s.isLock(f) {
			break
		}
		if ok { // tidy removed it during the wait
			f.Close()
			return s.lock(ctx)
		}
		select {
		case <-ctx.Done():
			defer f.Close()
			return nil, fmt.Errorf("%w (process %s); try again when it has finished", errBusy, holder(f))
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0) // only for the message above
	}
	if err := s.recover(); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// isLock says whether f is still the file at the lock's path.
func (s *Store) isLock(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(s.own("lock"))
	return err == nil && os.SameFile(mine, there)
}

func holder(f *os.File) string {
	buf := make([]byte, 20)
	n, _ := f.ReadAt(buf, 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return pid
	}
	return "unknown"
}

// recoverIfIdle cleans up after a dead process, if needed and if nobody holds the lock. It is for readers.
func (s *Store) recoverIfIdle() {
	if !exists(s.journalFile()) {
		return
	}
	f, err := os.OpenFile(s.own("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if ok, err := safefile.TryLock(f); err != nil || !ok {
		return
	}
	if err := s.recover(); err != nil {
		s.warn(err.Error())
	}
}

// A staging is a folder in which one change is prepared. Its lock file tells a later pollux whether its maker still
// lives.
type staging struct {
	dir  string
	lock *os.File
}

// newStaging makes one; close removes it. The store's lock must be held, or another pollux could sweep the folder
// before its own lock is taken.
func (s *Store) newStaging() (*staging, error) {
	if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
		return nil, fmt.Errorf("the folder of the extensions cannot be made: %w", err)
	}
	base := s.stagingDir()
	if err := safefile.PrivateDir(filepath.Dir(base)); err != nil && base == s.own("staging") {
		return nil, err
	}
	if err := safefile.PrivateDir(base); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(base, "")
	if err != nil {
		return nil, fmt.Errorf("preparing in %q: %w", base, safefile.Cause(err))
	}
	st := &staging{dir: dir}
	st.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = safefile.TryLock(st.lock)
	}
	if err != nil {
		st.close()
		return nil, fmt.Errorf("preparing in %q: %w", base, err)
	}
	return st, nil
}

func (st *staging) path(elem string) string { return filepath.Join(st.dir, elem) }

func (st *staging) close() {
	if st.lock != nil {
		st.lock.Close()
	}
	removeAll(st.dir)
}

// removeAll is os.RemoveAll, also for folders that were made read-only.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// sweep removes what dead processes left: stages and half-written files. The store's lock is held.
func (s *Store) sweep() {
	s.sweepFiles()
	entries, err := os.ReadDir(s.stagingDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(s.stagingDir(), e.Name())
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				removeAll(dir) // left by an interrupted removal
			}
			continue
		}
		ok, err := safefile.TryLock(f)
		f.Close() // before the removal: Windows removes no open file
		if err == nil && ok {
			removeAll(dir)
		}
	}
}

// sweepFiles removes half-written files. In most folders only holders of the lock write, so none is in use. In
// .gemini other parts of pollux write too, so only old files are removed there.
func (s *Store) sweepFiles() {
	dirs := []string{s.own(), s.own("records"), s.Dir()}
	if entries, err := os.ReadDir(s.Dir()); err == nil {
		for _, e := range entries {
			if e.IsDir() {
				dirs = append(dirs, s.folder(e.Name()))
			}
		}
	}
	for _, dir := range append(dirs, s.gemini) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !safefile.IsTemp(e.Name()) || e.IsDir() {
				continue
			}
			info, err := e.Info()
			if err == nil && (dir != s.gemini || s.now().Sub(info.ModTime()) > time.Minute) {
				_ = os.Remove(filepath.Join(dir, e.Name())) // if it fails, the next sweep tries again
			}
		}
	}
}
