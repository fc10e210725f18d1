package qwen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// PutRelay writes the lock of a companion that is a command (SPEC Q-8), and says where and whether that changed anything.
// It fails where another program's lock has that name. With dryRun nothing is written.
func PutRelay(home string, l *Lock, dryRun bool) (changed bool, path string, err error) {
	p := NewPlace(home, 0)
	want, err := l.encode()
	if err != nil {
		return false, p.Path(), err
	}
	have, ours, err := readRelay(p.Path())
	switch {
	case err != nil:
		return false, p.Path(), err
	case have != nil && !ours:
		return false, p.Path(), fmt.Errorf("%s is another program's; look at it, move it away, and try again", p.Path())
	case bytes.Equal(have, want):
		return false, p.Path(), nil
	case dryRun:
		return true, p.Path(), nil
	}
	return true, p.Path(), p.Put(l)
}

// RemoveRelay removes the lock that PutRelay wrote, and says where it is and whether it was there. Another program's lock
// stays. With dryRun nothing is removed.
func RemoveRelay(home string, dryRun bool) (removed bool, path string, err error) {
	p := NewPlace(home, 0)
	_, ours, err := readRelay(p.Path())
	if err != nil || !ours {
		return false, p.Path(), err
	}
	if !dryRun {
		err = os.Remove(p.Path())
	}
	return true, p.Path(), err
}

// readRelay reads the lock at path; nil stands for a missing one. ours says that it is a command that pollux wrote.
func readRelay(path string) (data []byte, ours bool, err error) {
	data, err = safefile.ReadPrivate(path, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	l, err := Parse(data)
	return data, err == nil && l.Ours && l.Stdio != nil, nil
}
