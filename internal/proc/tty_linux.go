package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// terminalOf reads /proc/PID/stat: the process group is field 5, the terminal field 7, and the terminal's foreground
// group field 8.
func terminalOf(pid int) (TTY, bool) {
	data, err := readStat(pid)
	if err != nil {
		return TTY{}, false
	}
	return parseTTY(data)
}

func parseTTY(data []byte) (TTY, bool) {
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]) // field 3 and later
	if len(fields) < 6 {
		return TTY{}, false
	}
	device, err := strconv.ParseInt(string(fields[4]), 10, 64)
	group, front := string(fields[2]), string(fields[5])
	return TTY{ID: uint64(device), Foreground: group == front}, err == nil && device != 0
}

// openTTY opens a terminal window's device by the number in /proc/PID/stat, whose low 8 and high 12 bits are the minor.
// What is opened must be that device, and this user's.
func openTTY(id uint64) (*os.File, error) {
	major, minor := uint32(id>>8&0xfff), uint32(id&0xff|id>>12&0xfff00)
	path := "/dev/pts/" + strconv.FormatUint(uint64(minor), 10)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || info.Rdev != unix.Mkdev(major, minor) || int(info.Uid) != os.Getuid() {
		f.Close()
		return nil, errNoTTY
	}
	return f, nil
}
