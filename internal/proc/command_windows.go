package proc

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// commandLine returns the command line that the process was started with, or else the program's name from the
// snapshot.
func commandLine(pid int) (string, bool) {
	line, err := startText(pid, unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.CommandLine))
	if err == nil && line != "" {
		return line, true
	}
	info, ok := lookup(pid)
	return info.Name, ok
}

func wordsOf(pid int) ([]string, bool) {
	line, ok := commandLine(pid)
	words, err := windows.DecomposeCommandLine(line)
	return words, ok && err == nil
}

func workingDir(pid int) (string, error) {
	return startText(pid, unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.CurrentDirectory))
}

// maxEnviron bounds an environment, in bytes.
const maxEnviron = 8 << 20

func environ(pid int) ([]string, error) {
	m, err := openStart(pid)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(m.process)
	at, err := read[uintptr](m, unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.Environment))
	if err != nil {
		return nil, err
	}
	size, err := read[uintptr](m, unsafe.Offsetof(windows.RTL_USER_PROCESS_PARAMETERS{}.EnvironmentSize))
	if err != nil {
		return nil, err
	}
	if at == 0 || size < 2 || size > maxEnviron {
		return nil, errHidden
	}
	block := make([]uint16, size/2)
	if err := m.read(at, unsafe.Pointer(&block[0]), uintptr(len(block)*2)); err != nil {
		return nil, err
	}
	return parseEnvBlock(block), nil
}

// A startMemory is the block of a process that records how it was started.
type startMemory struct {
	process windows.Handle
	at      uintptr // address of its RTL_USER_PROCESS_PARAMETERS
}

// openStart finds the block. The caller closes the process's handle.
func openStart(pid int) (m startMemory, err error) {
	m.process, err = windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.PROCESS_VM_READ, false, uint32(pid))
	if err != nil {
		return m, err
	}
	// PROCESS_BASIC_INFORMATION, with a number as the address: an address in another process must not be in a Go
	// pointer.
	var basic struct {
		status  windows.NTStatus
		peb     uintptr
		others1 uintptr
		others2 int32
		others3 [2]uintptr
	}
	err = windows.NtQueryInformationProcess(m.process, windows.ProcessBasicInformation, unsafe.Pointer(&basic), uint32(unsafe.Sizeof(basic)), nil)
	if err == nil {
		m.at = basic.peb
		m.at, err = read[uintptr](m, unsafe.Offsetof(windows.PEB{}.ProcessParameters))
	}
	if err == nil && m.at == 0 {
		err = errHidden
	}
	if err != nil {
		windows.CloseHandle(m.process)
	}
	return m, err
}

func (m startMemory) read(at uintptr, into unsafe.Pointer, size uintptr) error {
	return windows.ReadProcessMemory(m.process, at, (*byte)(into), size, nil)
}

// read reads a value at an offset of the block.
func read[T any](m startMemory, offset uintptr) (v T, err error) {
	return v, m.read(m.at+offset, unsafe.Pointer(&v), unsafe.Sizeof(v))
}

// startText reads a UNICODE_STRING of the block.
func startText(pid int, offset uintptr) (string, error) {
	m, err := openStart(pid)
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(m.process)
	head, err := read[struct {
		length, maximum uint16 // in bytes
		buffer          uintptr
	}](m, offset)
	if err != nil || head.length < 2 || head.buffer == 0 {
		return "", err
	}
	text := make([]uint16, head.length/2)
	err = m.read(head.buffer, unsafe.Pointer(&text[0]), uintptr(len(text)*2))
	return windows.UTF16ToString(text), err
}
