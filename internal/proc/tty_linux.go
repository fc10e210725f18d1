package proc

import (
	"bytes"
	"os"
	"strconv"
)

// terminalOf reads /proc/PID/stat: the process group is field 5, the terminal field 7, and the terminal's foreground
// group field 8.
func terminalOf(pid int) (TTY, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
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
