// Package lockfile keeps the files by which agents find a companion in a folder of their own home. Each companion has one. The package
// also removes the files that dead companions left behind, and reads the files as an agent does.
package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// maxSize bounds a lock file, in bytes.
const maxSize = 256 << 10

// maxFiles bounds what a crowded folder costs.
const maxFiles = 10_000

// A File is the lock file of one companion, from its first write to Remove. Its methods are for one goroutine at a time.
type File struct {
	path    string
	written []byte // nil when nothing is written
}

// New names a file, absolute, without touching the disk.
func New(path string) *File { return &File{path: path} }

// Path is the file's absolute path.
func (f *File) Path() string { return f.path }

// put writes the file, 0600 and atomically, in a folder of 0700. It leaves a file with the same content alone, because some agents
// take the file that was changed last.
func (f *File) put(data []byte) error {
	if there, err := safefile.ReadPrivate(f.path, maxSize); err == nil && bytes.Equal(there, data) {
		f.written = data
		return nil
	}
	if err := safefile.PrivateDir(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("no place for a lock file: %w", err)
	}
	if err := safefile.Write(f.path, data, &safefile.Options{Volatile: true}); err != nil {
		return fmt.Errorf("no lock file: %w", err)
	}
	f.written = data
	return nil
}

// Remove deletes the file as long as it is what put wrote. It may be called at any time, and again.
func (f *File) Remove() error {
	if f.written == nil {
		return nil
	}
	there, err := safefile.ReadPrivate(f.path, maxSize)
	if err == nil && bytes.Equal(there, f.written) {
		err = os.Remove(f.path)
	}
	f.written = nil
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweep removes the files named *.lock in a folder whose process has ended, and returns their paths. ours reads from a file's content
// which process keeps it alive; ok is false for a file that is not pollux's, which is never touched.
func sweep(dir string, ours func(data []byte) (pid int, ok bool)) (removed []string) {
	d, err := os.OpenFile(dir, os.O_RDONLY|safefile.NoWait, 0) // it may be a FIFO
	if err != nil {
		return nil
	}
	names, _ := d.Readdirnames(maxFiles)
	_ = d.Close()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if !strings.HasSuffix(name, ".lock") {
			continue
		}
		data, err := safefile.ReadPrivate(path, maxSize)
		if err != nil {
			continue
		}
		if pid, ok := ours(data); ok && pid > 1 && !proc.Alive(pid) && os.Remove(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed
}
