package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// An identity tells one file or folder from every other. It survives moves, and since it includes the creation time,
// a reused inode number gets another identity.
type identity struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Kind uint16 `json:"kind"`           // the file type bits of st_mode
	Born int64  `json:"born,omitempty"` // nanoseconds, 0 if the file system does not know
}

func (i identity) isDir() bool  { return i.Kind == unix.S_IFDIR }
func (i identity) isLink() bool { return i.Kind == unix.S_IFLNK }

// A status is what the kernel says about a file. It never follows a link.
type status struct {
	identity
	mode    uint32 // the permission bits
	uid     uint32
	changed int64 // nanoseconds; only the kernel sets it
}

// statAt looks at a name in an open folder, or at the folder itself for "".
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

// openFolder opens a folder by a path without links.
func openFolder(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

// listable opens a folder for reading. With mend it first repairs a mode that forbids that.
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

// mendMode lets a folder's owner search it, and restores its earlier mode if known.
func mendMode(fd int, st status, before *folder) error {
	mode := st.mode
	if before != nil && before.id == st.identity {
		mode = before.mode
	}
	return chmod(fd, mode|0o500)
}

// chmod changes the mode of an open file, even one opened with O_PATH.
func chmod(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// openIn opens a folder by name in an open folder, and follows no link.
func openIn(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// A direntry is one entry of a folder.
type direntry struct {
	name string
	dir  bool
}

// listFolder calls each for every entry of a folder that is open for reading, in the file system's order.
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

// readlinkAt returns a link's target.
func readlinkAt(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// mayEnter says whether a command of this user, without privileges, might look up names in a folder. When in doubt it
// says yes.
func (st status) mayEnter() bool {
	return int(st.uid) == os.Getuid() || st.mode&0o011 != 0
}
