package proc

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The states (netinet/tcp_fsm.h) from the beginning of a connection to its orderly end.
const (
	pcbEstablished = 4
	pcbFinWait2    = 9
)

// ends finds ends in the system's table.
type ends struct{}

func openEnds() (*ends, error) { return &ends{}, nil }

func (*ends) find(local, remote netip.AddrPort) (end, error) {
	table, err := unix.SysctlRaw("net.inet.tcp.pcblist_n")
	if err != nil {
		return end{}, err
	}
	p, ok := findPCB(table, local, remote)
	if !ok || p.state < pcbEstablished || p.state > pcbFinWait2 {
		return end{}, errNoEnd
	}
	return end{mine: int64(p.uid) == int64(os.Geteuid()), root: p.uid == 0, who: fmt.Sprint("user ", p.uid), pid: p.pid}, nil
}

// listener is not needed: a connection in the accept queue has its listener's user.
func (*ends) listener(netip.AddrPort) (end, error) { return end{}, errNoEnd }

// holders is not needed: find returns the process.
func (*ends) holders(uint64) []int { return nil }

// hidden is not needed: find returns the process.
func (*ends) hidden(uint64, func(int) bool) bool { return false }

func stillUp(net.Conn) bool { return true }
