package companion

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// hidesVariable makes the test's program connect to an address, by a thread with descriptors of its own. asksVariable makes it ask on a socket
// as Codex does, of the folder in asksOfVariable.
const (
	hidesVariable  = "POLLUX_TEST_HIDES"
	asksVariable   = "POLLUX_TEST_ASKS"
	asksOfVariable = "POLLUX_TEST_ASKS_OF"
)

// play does what a variable tells the test's program to do, once a byte comes, says what came of it, and ends with its standard input.
func play() {
	if os.Getenv(hidesVariable)+os.Getenv(asksVariable) == "" {
		return
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	switch {
	case os.Getenv(hidesVariable) != "":
		fmt.Println(connectHidden(netip.MustParseAddrPort(os.Getenv(hidesVariable))))
	default:
		fmt.Println(askAsCodex(os.Getenv(asksVariable), os.Getenv(asksOfVariable)))
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// connectHidden returns the port from which it has connected; 0 when it has not.
func connectHidden(address netip.AddrPort) int {
	connected := make(chan int)
	var connect func()
	connect = func() {
		runtime.LockOSThread() // and never unlocked: the thread keeps the descriptor
		if unix.Gettid() == os.Getpid() {
			go connect() // on another thread: the first one's descriptors are the process's
			select {}
		}
		defer close(connected)
		if unix.Unshare(unix.CLONE_FILES) != nil {
			return
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil || unix.Connect(fd, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}) != nil {
			return
		}
		if own, _ := unix.Getsockname(fd); own != nil {
			connected <- own.(*unix.SockaddrInet4).Port
		}
		select {}
	}
	go connect()
	return <-connected
}

func askAsCodex(path, folder string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	question := fmt.Sprintf(`{"type":"request","requestId":"1","sourceClientId":"x","method":"ide-context","params":{"workspaceRoot":%q}}`, folder)
	if _, err := conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(question))), question...)); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 5)) // the beginning of an answer
	return err
}
