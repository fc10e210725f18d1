package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// PutRelay writes the discovery file with which every CLI of this user that finds no editor of its own starts program as its relay
// (SPEC K-4). It returns the file's path, and whether it changed anything. program is absolute, and must stay where it is. With dryRun
// nothing is written.
func PutRelay(program string, dryRun bool) (changed bool, path string, err error) {
	if !filepath.IsAbs(program) {
		return false, "", fmt.Errorf("the program %q of the relay is not an absolute path", program)
	}
	path = filepath.Join(Dir(), RelayFile)
	temp := TempDir()
	file := File{
		Roots: []string{filepath.VolumeName(temp) + string(filepath.Separator)},
		IDE:   &IDE{Name: "pollux", DisplayName: "Pollux"},
		Stdio: &Stdio{Command: program, Args: []string{"relay", "--tmp", temp}},
	}
	want, err := file.Encode()
	if err != nil {
		return false, path, err
	}
	have, err := safefile.ReadPrivate(path, maxFile)
	switch {
	case err == nil && string(have) == string(want):
		return false, path, nil
	case dryRun:
		return true, path, nil
	}
	return true, path, NewPlace(Dir(), 1, 0).Put(&file)
}

// RemoveRelay removes the relay's discovery file. It returns the path, and whether the file was there. A file that is not a relay's
// stays, and is an error. With dryRun nothing is removed.
func RemoveRelay(dryRun bool) (removed bool, path string, err error) {
	path = filepath.Join(Dir(), RelayFile)
	data, err := safefile.ReadPrivate(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, path, nil
	}
	if err != nil {
		return false, path, err
	}
	if f, err := Parse(data); err != nil || f.Stdio == nil {
		return false, path, fmt.Errorf("%s is not a relay's file; look at it and remove it by hand", path)
	}
	if !dryRun {
		err = os.Remove(path)
	}
	return true, path, err
}
