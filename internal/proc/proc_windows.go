package proc

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// stillActive is the exit code of a running process.
const stillActive = 259

func alive(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return err == windows.ERROR_ACCESS_DENIED
	}
	defer windows.CloseHandle(h)
	var code uint32
	return windows.GetExitCodeProcess(h, &code) != nil || code == stillActive
}

func lookup(pid int) (Info, bool) {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return Info{}, false
	}
	defer windows.CloseHandle(snap)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snap, &entry); err == nil; err = windows.Process32Next(snap, &entry) {
		if entry.ProcessID == uint32(pid) {
			return Info{
				PID:    pid,
				Parent: int(entry.ParentProcessID),
				Name:   windows.UTF16ToString(entry.ExeFile[:]),
				Start:  startOf(pid),
			}, true
		}
	}
	return Info{}, false
}

func startOf(pid int) Stamp {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(h)
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return Stamp(created.Nanoseconds())
}

func leaderOf(int) (int, bool) { return 0, false }
