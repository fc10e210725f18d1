package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// An identity tells one file or folder from every other: it stays when the
// file is moved, and is not given to another one after it, because the moment
// of creation is part of it.
type identity struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Kind uint16 `json:"kind"`           // the type bits of st_mode
	Born int64  `json:"born,omitempty"` // nanoseconds, 0 where the file system does not say
}

func (i identity) isDir() bool  { return i.Kind == unix.S_IFDIR }
func (i identity) isLink() bool { return i.Kind == unix.S_IFLNK }

// A status is what the kernel says of a file, never of what a link leads to.
type status struct {
	identity
	mode    uint32 // the permission bits
	uid     uint32
	changed int64 // nanoseconds; set by the kernel alone
}

// statAt looks at a name in an open folder; at the folder itself for "".
func statAt(dir int, name string) (status, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var x unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &x); err != nil {
		return status{}, err
	}
	st := status{mode: uint32(x.Mode) &^ unix.S_IFMT, uid: x.Uid, changed: nanoseconds(x.Ctime)}
	st.identity = identity{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino, Kind: x.Mode & unix.S_IFMT}
	if x.Mask&unix.STATX_BTIME != 0 {
		st.Born = nanoseconds(x.Btime)
	}
	return st, nil
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// openFolder opens a folder by its path, which must hold no link.
func openFolder(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

// listable opens for reading the folder that a descriptor names. A mode that
// forbids that is changed, where mend is set.
func listable(at int, st status, mend bool, before *folder) (int, error) {
	fd, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if !errors.Is(err, unix.EACCES) || !mend {
		return fd, err
	}
	if err := mendMode(at, st, before); err != nil {
		return -1, err
	}
	return unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// mendMode gives a folder the mode that it had before, when that is known, and
// its owner the right to search it in any case.
func mendMode(fd int, st status, before *folder) error {
	mode := st.mode
	if before != nil && before.id == st.identity {
		mode = before.mode
	}
	return chmod(fd, mode|0o500)
}

// chmod changes the mode of what a descriptor names, which may have been
// opened for nothing but its path.
func chmod(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// openIn opens a folder by its name in an open folder; it follows no link.
func openIn(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// A direntry is one line of a folder.
type direntry struct {
	name string
	dir  bool
}

// listFolder calls each for every entry of a folder that was opened for
// reading, in the order of the file system.
func listFolder(fd int, buf []byte, each func(direntry)) error {
	for {
		n, err := unix.Getdents(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		for rest := buf[:n]; len(rest) > 19; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size < 20 || size > len(rest) {
				return errors.New("the folder cannot be read")
			}
			name, kind := unix.ByteSliceToString(rest[19:size]), rest[18]
			rest = rest[size:]
			if name == "." || name == ".." {
				continue
			}
			e := direntry{name: name, dir: kind == unix.DT_DIR}
			if kind == unix.DT_UNKNOWN {
				st, err := statAt(fd, name)
				e.dir = err == nil && st.isDir()
			}
			each(e)
		}
	}
}

// readlinkAt is what is written in a link.
func readlinkAt(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// mayEnter says whether a command of this user's, who has no privileges
// inside, could look up names in a folder. It errs on the side of yes.
func (st status) mayEnter() bool {
	return int(st.uid) == os.Getuid() || st.mode&0o011 != 0
}
