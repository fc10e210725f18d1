//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// keepOwner gives f the owner and group of old if they differ and the system allows it. Otherwise the file is the
// user's, as with every editor.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || is.Uid == was.Uid && is.Gid == was.Gid {
		return
	}
	if f.Chown(int(was.Uid), int(was.Gid)) != nil {
		_ = f.Chown(-1, int(was.Gid)) // only the group, which its members may set
	}
}

// owner returns the name of a file's owner, and whether it is this user.
func owner(info fs.FileInfo) (name string, own bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "somebody unknown", false
	}
	if int(st.Uid) == os.Geteuid() {
		return "you", true
	}
	uid := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(uid); err == nil {
		return u.Username, false
	}
	return "the user with id " + uid, false
}

func checkOwnDir(path string, info fs.FileInfo) error {
	if who, own := owner(info); !own {
		return &notPrivate{fmt.Sprintf("the folder %q belongs to %s, not to you; ask them to remove it, or set TMPDIR (or XDG_STATE_HOME, when it lies there) to a folder of your own, for every program that shall find it", path, who)}
	}
	if info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	// Ours, but others may write: another program made it under a loose umask. Use a descriptor, so that a link put
	// there now is not followed.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("looking at the folder %q: %w", path, Cause(err))
	}
	defer f.Close()
	if err := f.Chmod(info.Mode().Perm() &^ 0o022); err != nil {
		return &notPrivate{fmt.Sprintf("others may write to the folder %q and it cannot be changed (%v); run: chmod go-w %q", path, Cause(err), path)}
	}
	return nil
}

func openNoFollow(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &notPrivate{"it is a symbolic link, which is not followed here"}
	}
	return f, err
}
