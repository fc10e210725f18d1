package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	attrReadOnly = unix.MOUNT_ATTR_RDONLY
	attrQuiet    = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// A builder makes the new root. Every source is taken before anything is
// mounted, and gets its attributes before anybody can see it, so that nothing
// is writable for a moment that should not be.
type builder struct {
	scratch int // the tmpfs behind every private folder and file
	root    int
	files   int // counts those in scratch
}

// buildRoot replaces the file system of this process by what the setup names.
func (s *stager) buildRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	b := builder{}
	trees := make([]int, len(s.Mounts))
	for i, m := range s.Mounts {
		trees[i] = -1
		if m.Show != showBind && m.Show != showDevice && m.Show != showHeld {
			continue
		}
		var err error
		if trees[i], err = takeTree(m); err != nil {
			return fmt.Errorf("%q: %w", m.Source, err)
		}
	}
	if err := b.makeRoot(s.Root, s.Limits.Scratch); err != nil {
		return err
	}
	for i, m := range s.Mounts {
		if err := b.show(m, trees[i]); err != nil {
			return fmt.Errorf("%q (%s): %w", m.Target, m.Show, err)
		}
	}
	var err error
	if s.procFD, err = b.mountProc(); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	s.rootFD = b.root
	if err := enterRoot(b.root); err != nil {
		return err
	}
	unix.Close(b.scratch)
	return nil
}

// takeTree clones what lies at a source, with all that is mounted in it.
func takeTree(m mount) (int, error) {
	attr := uint64(attrQuiet)
	if m.Show == showDevice {
		attr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	if !m.Write && m.Show != showDevice {
		attr |= attrReadOnly
	}
	flags := uint64(0)
	if m.Show == showHeld {
		flags = unix.O_NOFOLLOW
	}
	return cloneTree(unix.AT_FDCWD, m.Source, attr, flags)
}

// cloneTree follows no symbolic link: paths were resolved when the plan was
// made, and one that has become a link since is an attack.
func cloneTree(dir int, name string, attr, flags uint64) (int, error) {
	at, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

// makeRoot mounts the private memory and the new root on a folder of the old
// one, which nobody will see again.
func (b *builder) makeRoot(r root, scratch int64) (err error) {
	var clone int
	if r.Host {
		attr := uint64(attrQuiet)
		if !r.Write {
			attr |= attrReadOnly
		}
		if clone, err = cloneTree(unix.AT_FDCWD, "/", attr, 0); err != nil {
			return fmt.Errorf("the root folder: %w", err)
		}
	}
	if b.scratch, err = tmpfs(scratch, 0o755); err != nil {
		return fmt.Errorf("private memory: %w", err)
	}
	at := "/tmp"
	if _, err := os.Stat(at); err != nil {
		at = "/usr"
	}
	if err := attach(b.scratch, unix.AT_FDCWD, at); err != nil {
		return fmt.Errorf("private memory on %s: %w", at, err)
	}
	if b.root = clone; !r.Host {
		if b.root, err = tmpfs(4*mib, 0o755); err != nil {
			return fmt.Errorf("an empty root folder: %w", err)
		}
	}
	if err := attach(b.root, unix.AT_FDCWD, at); err != nil {
		return fmt.Errorf("the new root on %s: %w", at, err)
	}
	return nil
}

func tmpfs(size int64, mode uint32) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range [][2]string{{"size", strconv.FormatInt(size, 10)}, {"nr_inodes", "65536"}, {"mode", "0" + strconv.FormatUint(uint64(mode), 8)}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrQuiet)
}

func attach(tree, dir int, name string) error {
	flags := unix.MOVE_MOUNT_F_EMPTY_PATH
	if name == "" {
		flags |= unix.MOVE_MOUNT_T_EMPTY_PATH
	}
	return unix.MoveMount(tree, "", dir, name, flags)
}

// show puts one mount in its place.
func (b *builder) show(m mount, tree int) (err error) {
	switch m.Show {
	case showLink:
		return b.link(m)
	case showHeld:
		defer unix.Close(tree)
		at, err := b.place(m.Target)
		if err != nil {
			return err
		}
		defer unix.Close(at)
		_ = attach(tree, at, "") // a kernel that does not know how: the link is put back later
		return nil
	case showDir:
		at, err := b.target(m.Target, true)
		if err == nil {
			unix.Close(at)
		}
		return err
	case showScratch:
		tree, err = b.private(m.Source)
	case showFile, showVoid:
		tree, err = b.file(m.Data)
	case showNothing, showCopy:
		tree, err = b.folder(m.Files, nil)
	case showDev:
		tree, err = b.folder(m.Files, map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"})
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	var stat unix.Stat_t
	if err := unix.Fstat(tree, &stat); err != nil {
		return err
	}
	at, err := b.target(m.Target, stat.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return attach(tree, at, "")
}

// target opens the place of a mount. What is missing is made, which the plan
// lets happen in memory only: elsewhere a read-only mount forbids it.
func (b *builder) target(target string, dir bool) (int, error) {
	name := strings.TrimPrefix(target, "/")
	if name == "" {
		return unix.Openat(b.root, ".", unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(b.root, name, &how)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	parent, err := b.target(path.Dir(target), true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	if dir {
		err = unix.Mkdirat(parent, path.Base(target), 0o755)
	} else {
		err = unix.Mknodat(parent, path.Base(target), unix.S_IFREG|0o644, 0)
	}
	if err != nil {
		return -1, err
	}
	return unix.Openat2(b.root, name, &how)
}

// place opens a link itself.
func (b *builder) place(link string) (int, error) {
	return unix.Openat2(b.root, strings.TrimPrefix(link, "/"), &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

func (b *builder) link(m mount) error {
	parent, err := b.target(path.Dir(m.Target), true)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return unix.Symlinkat(m.Source, parent, path.Base(m.Target))
}

// private is a writable folder in the private memory, the same for the same name.
func (b *builder) private(name string) (int, error) {
	mode := uint32(0o1777)
	if name == scratchHome {
		mode = 0o700
	}
	if err := unix.Mkdirat(b.scratch, name, mode); err != nil && err != unix.EEXIST {
		return -1, err
	}
	if err := unix.Fchmodat(b.scratch, name, mode, 0); err != nil {
		return -1, err
	}
	return cloneTree(b.scratch, name, attrQuiet, 0)
}

// file is a read-only file in the private memory.
func (b *builder) file(data string) (int, error) {
	name := b.next()
	if err := writeFile(b.scratch, name, []byte(data), 0o444); err != nil {
		return -1, err
	}
	return cloneTree(b.scratch, name, attrQuiet|attrReadOnly, 0)
}

// folder is a read-only folder in the private memory, with files and links.
func (b *builder) folder(files []CopyFile, links map[string]string) (int, error) {
	name := b.next()
	if err := unix.Mkdirat(b.scratch, name, 0o755); err != nil {
		return -1, err
	}
	at, err := unix.Openat(b.scratch, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	for _, f := range files {
		if err := writeCopy(at, f); err != nil {
			return -1, fmt.Errorf("%q: %w", f.Name, err)
		}
	}
	for from, to := range links {
		if err := unix.Symlinkat(to, at, from); err != nil {
			return -1, err
		}
	}
	return cloneTree(b.scratch, name, attrQuiet|attrReadOnly, 0)
}

// writeCopy makes one file or folder below dir, with the folders above it.
func writeCopy(dir int, f CopyFile) error {
	name := path.Clean(f.Name)
	folders := strings.Split(name, "/")
	if !strings.HasSuffix(f.Name, "/") {
		folders = folders[:len(folders)-1]
	}
	for i := range folders {
		if err := unix.Mkdirat(dir, path.Join(folders[:i+1]...), 0o755); err != nil && err != unix.EEXIST {
			return err
		}
	}
	if strings.HasSuffix(f.Name, "/") {
		return nil
	}
	mode := uint32(0o444)
	if f.Executable {
		mode = 0o555
	}
	err := writeFile(dir, name, f.Data, mode)
	if errors.Is(err, unix.EEXIST) && len(f.Data) == 0 {
		return nil // a place for a mount, over a file that is there
	}
	return err
}

func (b *builder) next() string {
	b.files++
	return "." + strconv.Itoa(b.files)
}

func writeFile(dir int, name string, data []byte, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// mountProc mounts a /proc that knows this process's namespace only. What in
// it tells about the machine is covered.
func (b *builder) mountProc() (int, error) {
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	proc, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrQuiet|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, err
	}
	at, err := b.target("/proc", true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	if err := attach(proc, at, ""); err != nil {
		return -1, err
	}
	for _, name := range []string{"cmdline", "keys", "timer_list", "config.gz", "kcore", "kallsyms"} {
		if unix.Faccessat(proc, name, unix.F_OK, 0) != nil {
			continue
		}
		void, err := b.file("")
		if err != nil {
			return -1, err
		}
		if err := attach(void, proc, name); err != nil {
			return -1, err
		}
		unix.Close(void)
	}
	return proc, nil
}

// enterRoot makes root this process's whole file system.
func enterRoot(root int) error {
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("entering the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("exchanging the roots: %w", err)
	}
	// The old root lies over the new one now.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	return unix.Chdir("/")
}

// seal makes /proc, and a root in memory, read-only.
func (s *stager) seal() error {
	attr := unix.MountAttr{Attr_set: attrReadOnly}
	if err := unix.MountSetattr(s.procFD, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if s.Root.Write {
		return nil
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("the root folder: %w", err)
	}
	return nil
}
