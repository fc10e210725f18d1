package proc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ends finds ends in the system's table.
type ends struct{}

func openEnds() (*ends, error) { return &ends{}, nil }

const tcpTableOwnerPIDConnections = 4 // TCP_TABLE_OWNER_PID_CONNECTIONS

func (*ends) find(local, remote netip.AddrPort) (end, error) {
	if !local.Addr().Is4() {
		return end{}, errors.New("only connections over IPv4 are looked up")
	}
	table, err := tcpTable()
	if err != nil {
		return end{}, err
	}
	pid, ok := findRow(table, local, remote)
	if !ok || pid == 0 {
		return end{}, errNoEnd
	}
	mine, root, err := whose(pid)
	return end{mine: mine, root: root, who: fmt.Sprintf("the user of process %d", pid), pid: int(pid)}, err
}

// tcpTable returns the system's table of IPv4 connections with their processes.
func tcpTable() ([]byte, error) {
	call := windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")
	if err := call.Find(); err != nil {
		return nil, err
	}
	size := uint32(64 << 10)
	for range 8 { // it may have grown since its size was read
		table := make([]byte, size)
		errno, _, _ := call.Call(uintptr(unsafe.Pointer(&table[0])), uintptr(unsafe.Pointer(&size)), 0,
			windows.AF_INET, tcpTableOwnerPIDConnections, 0)
		switch windows.Errno(errno) {
		case 0:
			return table, nil
		case windows.ERROR_INSUFFICIENT_BUFFER:
			size += 16 << 10
		default:
			return nil, windows.Errno(errno)
		}
	}
	return nil, windows.ERROR_INSUFFICIENT_BUFFER
}

// whose returns the user of a process. A process that this user may not inspect belongs to somebody else.
func whose(pid uint32) (mine, root bool, err error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return false, false, nil
	}
	defer windows.CloseHandle(process)
	var token windows.Token
	if err := windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token); err != nil {
		return false, false, nil
	}
	defer token.Close()
	theirs, err := token.GetTokenUser()
	if err != nil {
		return false, false, err
	}
	ours, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return false, false, err
	}
	return theirs.User.Sid.Equals(ours.User.Sid), theirs.User.Sid.IsWellKnown(windows.WinLocalSystemSid), nil
}

// listener is not needed: a connection in the accept queue has its listener's user.
func (*ends) listener(netip.AddrPort) (end, error) { return end{}, errNoEnd }

// holders is not needed: find returns the process.
func (*ends) holders(uint64) []int { return nil }

// hidden is not needed: find returns the process.
func (*ends) hidden(uint64, func(int) bool) bool { return false }

func stillUp(net.Conn) bool { return true }
