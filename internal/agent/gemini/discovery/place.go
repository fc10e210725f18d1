package discovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// RelayFile is the name of the relay's file (SPEC K-4), which belongs to no living process.
const RelayFile = "gemini-ide-server-1-0.json"

// maxFile bounds a discovery file, in bytes; the longest list of roots fits.
const maxFile = 256 << 10

// Agent is Gemini CLI's name in the table of agents.
const Agent = "gemini"

// Dir returns the folder of the discovery files in this environment (SPEC D-1); it may not exist.
func Dir() string { return DirIn(TempDir()) }

// DirIn is Dir for a temporary folder.
func DirIn(temp string) string { return filepath.Join(temp, "gemini", "ide") }

// FileName is the name of the discovery file of a process and port.
func FileName(pid, port int) string {
	return fmt.Sprintf("gemini-ide-server-%d-%d.json", pid, port)
}

// ParseName is the opposite of FileName; ok is false for any other name.
func ParseName(name string) (pid, port int, ok bool) {
	middle, found := strings.CutPrefix(name, "gemini-ide-server-")
	middle, found2 := strings.CutSuffix(middle, ".json")
	first, second, found3 := strings.Cut(middle, "-")
	if !found || !found2 || !found3 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(first)
	port, err2 := strconv.Atoi(second)
	// Atoi also takes signs and leading zeros, which no companion writes.
	if err != nil || err2 != nil || FileName(pid, port) != name || pid < 0 || port < 0 || port > 65535 {
		return 0, 0, false
	}
	return pid, port, true
}

// A Place is the discovery file of one companion, from Put to Remove. Its methods are for one goroutine at a time.
type Place struct {
	path    string
	written bool
}

// NewPlace names the file of a process and port in dir (usually Dir()) without touching the disk.
func NewPlace(dir string, pid, port int) *Place {
	return &Place{path: filepath.Join(dir, FileName(pid, port))}
}

// Path is the file's absolute path.
func (p *Place) Path() string { return p.path }

// Prepare makes the folders, and checks that they are this user's alone and writable
// (SPEC D-4). A companion can then refuse to start before anything runs.
func Prepare(dir string) error {
	// The parent as well: a user who may rename <tmp>/gemini/ide could put their own there.
	for _, d := range []string{filepath.Dir(dir), dir} {
		err := safefile.PrivateDir(d)
		if errors.Is(err, safefile.ErrNotPrivate) {
			return fmt.Errorf("Gemini CLI could not trust the folder of its discovery files: %w", err)
		}
		if err != nil {
			return fmt.Errorf("no place for the discovery file: %w; make it writable, or set TMPDIR to a folder of your own, here and where gemini runs", err)
		}
	}
	return nil
}

// Put writes the file, mode 0600, atomically, and replaces what Put wrote before (SPEC D-4).
func (p *Place) Put(f *File) error {
	data, err := f.Encode()
	if err != nil {
		return err
	}
	if err := Prepare(filepath.Dir(p.path)); err != nil {
		return err
	}
	if err := safefile.Write(p.path, data, &safefile.Options{Volatile: true}); err != nil {
		return fmt.Errorf("no discovery file for Gemini CLI: %w; set TMPDIR to a folder that you can write to, here and where gemini runs", err)
	}
	p.written = true
	return nil
}

// Remove deletes the file (SPEC D-5). It may be called at any time, and again.
func (p *Place) Remove() error {
	if !p.written {
		return nil
	}
	p.written = false
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A Found is a discovery file that lies in a folder.
type Found struct {
	Path      string
	PID, Port int // from the name
	File      *File
}

// List reads the files of a folder that belong to this user. It leaves out other users'
// files, malformed files, and other names. A missing folder gives an empty list.
func List(dir string) ([]Found, error) {
	names, err := readNames(dir)
	if err != nil {
		return nil, err
	}
	var entries []Found
	for _, name := range names {
		pid, port, ok := ParseName(name)
		if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		data, err := safefile.ReadPrivate(path, maxFile)
		if err != nil {
			continue
		}
		if f, err := Parse(data); err == nil {
			entries = append(entries, Found{Path: path, PID: pid, Port: port, File: f})
		}
	}
	return entries, nil
}

// readNames bounds what a crowded folder costs.
func readNames(dir string) ([]string, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|safefile.NoWait, 0) // it may be a FIFO
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(10_000)
	if len(names) > 0 || errors.Is(err, io.EOF) {
		return names, nil
	}
	return nil, err
}
