package qwen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// maxLock bounds a lock file, in bytes.
const maxLock = 256 << 10

// relayLock is the lock with which a Qwen Code that finds no editor starts program as its relay (SPEC Q-8). program is
// absolute and must stay where it is. home is the folder of Qwen Code's files; Qwen Code does not pass that on to the relay.
func relayLock(home, program string) *lockfile.Lock {
	return &lockfile.Lock{
		Roots: []string{filepath.VolumeName(home) + string(filepath.Separator)}, Name: "pollux", DisplayName: "Pollux",
		Stdio: &lockfile.Stdio{Command: program, Args: []string{"relay", "--qwen-home", home}},
	}
}

// PutRelay writes the lock of a companion that is a command (SPEC Q-8). It returns the lock's path, and whether it changed anything.
// It fails when another program's lock has that name. With dryRun nothing is written.
func PutRelay(program string, dryRun bool) (changed bool, path string, err error) {
	if !filepath.IsAbs(program) {
		return false, "", fmt.Errorf("the program %q of the relay is not an absolute path", program)
	}
	home, err := folder(os.Getenv)
	if err != nil {
		return false, "", err
	}
	return putRelay(home, relayLock(home, program), dryRun)
}

func putRelay(home string, l *lockfile.Lock, dryRun bool) (changed bool, path string, err error) {
	file := lockfile.New(lockfile.Path(home, 0))
	want, err := encode(l)
	if err != nil {
		return false, file.Path(), err
	}
	have, ours, err := readRelay(file.Path())
	switch {
	case err != nil:
		return false, file.Path(), err
	case have != nil && !ours:
		return false, file.Path(), fmt.Errorf("%s is another program's; look at it, move it away, and try again", file.Path())
	case bytes.Equal(have, want):
		return false, file.Path(), nil
	case dryRun:
		return true, file.Path(), nil
	}
	return true, file.Path(), Locks().Put(file, l)
}

// RemoveRelay removes the lock that PutRelay wrote. It returns the path, and whether the lock was there. Another program's lock
// stays. With dryRun nothing is removed.
func RemoveRelay(dryRun bool) (removed bool, path string, err error) {
	home, err := folder(os.Getenv)
	if err != nil {
		return false, "", err
	}
	return removeRelay(home, dryRun)
}

func removeRelay(home string, dryRun bool) (removed bool, path string, err error) {
	file := lockfile.New(lockfile.Path(home, 0))
	_, ours, err := readRelay(file.Path())
	if err != nil || !ours {
		return false, file.Path(), err
	}
	if !dryRun {
		err = os.Remove(file.Path())
	}
	return true, file.Path(), err
}

// readRelay reads the lock at path; nil when it is missing. ours says that pollux wrote it and that it is a command.
func readRelay(path string) (data []byte, ours bool, err error) {
	data, err = safefile.ReadPrivate(path, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	l, err := decode(data)
	return data, err == nil && l.Ours && l.Stdio != nil, nil
}
