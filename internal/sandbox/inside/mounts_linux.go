package inside

import (
	"errors"
	"path"
	"strconv"
	"syscall"

	"github.com/pollux-companion/pollux/internal/sandbox/kernel"
)

const (
	attrReadOnly = kernel.MountAttrRdonly
	attrQuiet    = kernel.MountAttrNosuid | kernel.MountAttrNodev
)

// A builder makes the new root folder. The order matters. First it clones every source and sets the clone's
// attributes; only then does it mount anything. So no mount is ever visible with more rights than it should have, not
// even for a moment, and no mount can cover the source of a later one.
type builder struct {
	scratch int // the tmpfs that holds all private folders and files
	root    int
	files   int      // number of generated names in scratch
	closed  []string // folders hidden as a whole, because this process may not search them
}

// buildRoot replaces this process's file system with the one that the setup describes.
func (s *stager) buildRoot() error {
	// A mount that the host makes during the run must not appear in here: it could lie over what the plan shows.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return on("private mounts", err)
	}
	b := builder{}
	// All sources first: makeRoot mounts over /tmp or /usr, which may contain a source.
	trees := make([]int, len(s.Mounts))
	for i, m := range s.Mounts {
		trees[i] = -1
		if m.Show != ShowBind && m.Show != ShowDevice && m.Show != ShowHeld {
			continue
		}
		var err error
		if trees[i], err = takeTree(m); err != nil {
			return on(strconv.Quote(m.Source), err)
		}
	}
	if err := b.makeRoot(s.Root, s.Limits.Scratch); err != nil {
		return err
	}
	for i, m := range s.Mounts {
		// A path to hide can lie in a folder that this process may not search. Then cover hides that folder.
		hides := m.Show == ShowNothing || m.Show == ShowVoid
		if hides && b.covered(m.Target) {
			s.Mounts[i].Show = ShowDir // its parent is already hidden as a whole
			continue
		}
		err := b.show(m, trees[i])
		if hides && errors.Is(err, syscall.EACCES) {
			s.Mounts[i].Show = ShowDir
			err = b.cover(m.Target)
		}
		if err != nil {
			return on(strconv.Quote(m.Target)+" ("+m.Show+")", err)
		}
	}
	var err error
	if s.procFD, err = b.mountProc(); err != nil {
		return on("/proc", err)
	}
	s.rootFD = b.root
	if err := enterRoot(b.root); err != nil {
		return err
	}
	syscall.Close(b.scratch)
	return nil
}

// takeTree clones a source with everything mounted below it, and sets the clone's attributes. A device works
// only without nodev, so it gets noexec instead.
func takeTree(m Mount) (int, error) {
	attr := uint64(attrQuiet)
	if m.Show == ShowDevice {
		attr = kernel.MountAttrNosuid | kernel.MountAttrNoexec
	}
	if !m.Write && m.Show != ShowDevice {
		attr |= attrReadOnly
	}
	flags := uint64(0)
	if m.Show == ShowHeld {
		flags = syscall.O_NOFOLLOW
	}
	return cloneTree(kernel.ATFdcwd, m.Source, attr, flags)
}

// cloneTree refuses symbolic links. The plan resolved all paths, so a link here was put there since: a race that
// would redirect the mount. It opens the source once and clones what it has opened, so nobody can exchange it in between;
// and the clone has its attributes before it is attached anywhere.
func cloneTree(dir int, name string, attr, flags uint64) (int, error) {
	at, err := kernel.Openat2(dir, name, &kernel.OpenHow{Flags: kernel.OPath | syscall.O_CLOEXEC | flags, Resolve: kernel.ResolveNoSymlinks | kernel.ResolveNoMagiclinks})
	if err != nil {
		return -1, err
	}
	defer syscall.Close(at)
	tree, err := kernel.OpenTree(at, "", kernel.ATEmptyPath|kernel.ATRecursive|kernel.OpenTreeClone|kernel.OpenTreeCloexec)
	if err != nil {
		return -1, err
	}
	if err := kernel.MountSetattr(tree, "", kernel.ATEmptyPath|kernel.ATRecursive, &kernel.MountAttr{AttrSet: attr}); err != nil {
		syscall.Close(tree)
		return -1, err
	}
	return tree, nil
}

// makeRoot mounts the private memory and the new root on a folder of the old root. That folder only serves as a mount
// point: enterRoot drops the whole old root.
func (b *builder) makeRoot(r Root, scratch int64) (err error) {
	var clone int
	if r.Host {
		attr := uint64(attrQuiet)
		if !r.Write {
			attr |= attrReadOnly
		}
		if clone, err = cloneTree(kernel.ATFdcwd, "/", attr, 0); err != nil {
			return on("the root folder", err)
		}
	}
	if b.scratch, err = tmpfs(scratch, 0o755); err != nil {
		return on("private memory", err)
	}
	place := "/tmp"
	if syscall.Access(place, 0) != nil {
		place = "/usr"
	}
	if err := attach(b.scratch, kernel.ATFdcwd, place); err != nil {
		return on("private memory on "+place, err)
	}
	if b.root = clone; !r.Host {
		if b.root, err = tmpfs(4<<20, 0o755); err != nil {
			return on("an empty root folder", err)
		}
	}
	if err := attach(b.root, kernel.ATFdcwd, place); err != nil {
		return on("the new root on "+place, err)
	}
	return nil
}

// tmpfs makes a file system in memory, attached nowhere. Its inodes have a bound beside its size, because empty files take
// memory that the size does not count.
func tmpfs(size int64, mode uint32) (int, error) {
	fs, err := kernel.Fsopen("tmpfs", kernel.FsopenCloexec)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fs)
	for _, option := range [][2]string{{"size", strconv.FormatInt(size, 10)}, {"nr_inodes", "65536"}, {"mode", "0" + strconv.FormatUint(uint64(mode), 8)}} {
		if err := kernel.FsconfigSet(fs, option[0], option[1]); err != nil {
			return -1, err
		}
	}
	if err := kernel.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return kernel.Fsmount(fs, kernel.FsmountCloexec, attrQuiet)
}

// attach puts a tree onto an open place, or onto a name below it. With a place that was opened before, no path is looked
// up again, and nobody can lead the mount elsewhere.
func attach(tree, dir int, name string) error {
	flags := kernel.MoveMountFEmptyPath
	if name == "" {
		flags |= kernel.MoveMountTEmptyPath
	}
	return kernel.MoveMount(tree, "", dir, name, flags)
}

// show puts one mount in its place.
func (b *builder) show(m Mount, tree int) (err error) {
	switch m.Show {
	case ShowLink:
		return b.link(m)
	case ShowHeld:
		defer syscall.Close(tree)
		at, err := b.place(m.Target)
		if err != nil {
			return err
		}
		defer syscall.Close(at)
		_ = attach(tree, at, "") // not every kernel can mount over a link; then a changed link is put back after the run
		return nil
	case ShowDir:
		at, err := b.target(m.Target, true)
		if err == nil {
			syscall.Close(at)
		}
		return err
	case ShowScratch:
		tree, err = b.private(m.Source)
	case ShowFile, ShowVoid:
		tree, err = b.file(m.Data)
	case ShowNothing, ShowCopy:
		tree, err = b.folder(m.Files, nil)
	case ShowDev:
		tree, err = b.folder(m.Files, map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"})
	}
	if err != nil {
		return err
	}
	defer syscall.Close(tree)
	var stat syscall.Stat_t
	if err := syscall.Fstat(tree, &stat); err != nil {
		return err
	}
	at, err := b.target(m.Target, stat.Mode&syscall.S_IFMT == syscall.S_IFDIR)
	if err != nil {
		return err
	}
	defer syscall.Close(at)
	return attach(tree, at, "")
}

// cover hides the nearest reachable folder above target with an empty one. It is for a target inside another user's
// folder that this process may not search. The command may not search it either, but that user could open the folder
// during the run.
func (b *builder) cover(target string) error {
	for dir := path.Dir(target); dir != "/"; dir = path.Dir(dir) {
		if err := b.show(Mount{Show: ShowNothing, Target: dir}, -1); !errors.Is(err, syscall.EACCES) {
			b.closed = append(b.closed, dir)
			return err
		}
	}
	return syscall.EACCES
}

// covered says whether a path lies in a folder that cover has hidden.
func (b *builder) covered(target string) bool {
	for _, dir := range b.closed {
		if len(target) > len(dir) && target[:len(dir)] == dir && target[len(dir)] == '/' {
			return true
		}
	}
	return false
}

// target opens the place for a mount. It creates what is missing. The plan allows that only in private memory;
// elsewhere a read-only mount makes it fail. It never follows a link, so a folder that was swapped for a link cannot
// redirect a mount.
func (b *builder) target(target string, dir bool) (int, error) {
	name := target[1:] // target is absolute
	if name == "" {
		return syscall.Openat(b.root, ".", kernel.OPath|syscall.O_CLOEXEC, 0)
	}
	how := kernel.OpenHow{Flags: kernel.OPath | syscall.O_CLOEXEC, Resolve: kernel.ResolveInRoot | kernel.ResolveNoSymlinks | kernel.ResolveNoMagiclinks}
	fd, err := kernel.Openat2(b.root, name, &how)
	if !errors.Is(err, syscall.ENOENT) {
		return fd, err
	}
	parent, err := b.target(path.Dir(target), true)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(parent)
	if dir {
		err = syscall.Mkdirat(parent, path.Base(target), 0o755)
	} else {
		err = syscall.Mknodat(parent, path.Base(target), syscall.S_IFREG|0o644, 0)
	}
	if err != nil {
		return -1, err
	}
	return kernel.Openat2(b.root, name, &how)
}

// place opens a symbolic link itself, not what it points to.
func (b *builder) place(link string) (int, error) {
	return kernel.Openat2(b.root, link[1:], &kernel.OpenHow{Flags: kernel.OPath | syscall.O_NOFOLLOW | syscall.O_CLOEXEC,
		Resolve: kernel.ResolveInRoot | kernel.ResolveNoSymlinks | kernel.ResolveNoMagiclinks})
}

// link makes a symbolic link as the host has it, such as /bin to usr/bin.
func (b *builder) link(m Mount) error {
	parent, err := b.target(path.Dir(m.Target), true)
	if err != nil {
		return err
	}
	defer syscall.Close(parent)
	return kernel.Symlinkat(m.Source, parent, path.Base(m.Target))
}

// private returns a clone of the writable folder with that name in private memory. Equal names share one folder: /tmp,
// /var/tmp and /dev/shm are one. The mode is set once more, past the umask.
func (b *builder) private(name string) (int, error) {
	mode := uint32(0o1777)
	if name == ScratchHome {
		mode = 0o700
	}
	if err := syscall.Mkdirat(b.scratch, name, mode); err != nil && err != syscall.EEXIST {
		return -1, err
	}
	if err := syscall.Fchmodat(b.scratch, name, mode, 0); err != nil {
		return -1, err
	}
	return cloneTree(b.scratch, name, attrQuiet, 0)
}

// file returns a read-only file in private memory.
func (b *builder) file(data string) (int, error) {
	name := b.next()
	if err := writeFile(b.scratch, name, []byte(data), 0o444); err != nil {
		return -1, err
	}
	return cloneTree(b.scratch, name, attrQuiet|attrReadOnly, 0)
}

// folder returns a read-only folder in private memory, with files and links.
func (b *builder) folder(files []File, links map[string]string) (int, error) {
	name := b.next()
	if err := syscall.Mkdirat(b.scratch, name, 0o755); err != nil {
		return -1, err
	}
	at, err := syscall.Openat(b.scratch, name, kernel.OPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(at)
	for _, f := range files {
		if err := writeCopy(at, f); err != nil {
			return -1, on(strconv.Quote(f.Name), err)
		}
	}
	for from, to := range links {
		if err := kernel.Symlinkat(to, at, from); err != nil {
			return -1, err
		}
	}
	return cloneTree(b.scratch, name, attrQuiet|attrReadOnly, 0)
}

// writeCopy makes one file or folder below dir, and its parent folders.
func writeCopy(dir int, f File) error {
	name, folder := path.Clean(f.Name), f.Name[len(f.Name)-1] == '/'
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' || i == len(name) && !folder {
			continue
		}
		if err := syscall.Mkdirat(dir, name[:i], 0o755); err != nil && err != syscall.EEXIST {
			return err
		}
	}
	if folder {
		return nil
	}
	mode := uint32(0o444)
	if f.Executable {
		mode = 0o555
	}
	err := writeFile(dir, name, f.Data, mode)
	if errors.Is(err, syscall.EEXIST) && len(f.Data) == 0 {
		return nil // an empty file is only a mount point, and a file is there already
	}
	return err
}

func (b *builder) next() string {
	b.files++
	return "." + strconv.Itoa(b.files)
}

func writeFile(dir int, name string, data []byte, mode uint32) error {
	fd, err := syscall.Openat(dir, name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	err = writeAll(fd, data)
	if closeErr := syscall.Close(fd); err == nil {
		err = closeErr
	}
	return err
}

// mountProc mounts a /proc for this process namespace and covers the files that tell about the machine. The host's own
// /proc would show every process of the machine, with their arguments and environments.
func (b *builder) mountProc() (int, error) {
	fs, err := kernel.Fsopen("proc", kernel.FsopenCloexec)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fs)
	if err := kernel.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	proc, err := kernel.Fsmount(fs, kernel.FsmountCloexec, attrQuiet|kernel.MountAttrNoexec)
	if err != nil {
		return -1, err
	}
	at, err := b.target("/proc", true)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(at)
	if err := attach(proc, at, ""); err != nil {
		return -1, err
	}
	for _, name := range []string{"cmdline", "keys", "timer_list", "config.gz", "kcore", "kallsyms"} {
		if syscall.Faccessat(proc, name, syscall.F_OK, 0) != nil {
			continue
		}
		void, err := b.file("")
		if err != nil {
			return -1, err
		}
		if err := attach(void, proc, name); err != nil {
			return -1, err
		}
		syscall.Close(void)
	}
	return proc, nil
}

// enterRoot makes root the whole file system of this process. It exchanges the roots instead of changing the root
// folder (chroot), which a process can leave again.
func enterRoot(root int) error {
	if err := syscall.Fchdir(root); err != nil {
		return on("entering the new root", err)
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return on("exchanging the roots", err)
	}
	// PivotRoot(".", ".") left the old root mounted over the new one.
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return on("leaving the old root", err)
	}
	return syscall.Chdir("/")
}

// seal makes /proc read-only, and the root folder unless the policy allows writing to all of it. It runs after
// system, which needs a writable /proc.
func (s *stager) seal() error {
	attr := kernel.MountAttr{AttrSet: attrReadOnly}
	if err := kernel.MountSetattr(s.procFD, "", kernel.ATEmptyPath, &attr); err != nil {
		return on("/proc", err)
	}
	if s.Root.Write {
		return nil
	}
	if err := kernel.MountSetattr(kernel.ATFdcwd, "/", 0, &attr); err != nil {
		return on("the root folder", err)
	}
	return nil
}
