package sandbox

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/permission"
)

// What programs write when a socket is refused is told apart from other failures.
func TestMissed(t *testing.T) {
	t.Parallel()
	hosts := Policy{Hosts: []permission.Host{{Name: "example.com", Ports: []int{443}}}}
	forkserver := `  File "/usr/lib/python3.11/multiprocessing/forkserver.py", line 136, in ensure_running
    with socket.socket(socket.AF_UNIX) as listener:
  File "/usr/lib/python3.11/socket.py", line 232, in __init__
    _socket.socket.__init__(self, family, type, proto, fileno)
PermissionError: [Errno 13] Permission denied
`
	plain := strings.ReplaceAll(strings.ReplaceAll(forkserver, "multiprocessing/forkserver", "http/server"), "AF_UNIX", "AF_INET")
	for _, c := range []struct {
		output          string
		without, beside Missed // without a host, and with one
	}{
		{forkserver, MissedSocket, MissedSocket},
		{plain, MissedNetwork, MissedNothing},
		{"Error: listen EACCES: permission denied 0.0.0.0", MissedNetwork, MissedNothing},
		{"Error: listen EACCES: permission denied /tmp/x.sock\n  syscall: 'listen',\n  address: '/tmp/x.sock'", MissedSocket, MissedSocket},
		{"  code: 'EACCES',\n  syscall: 'connect',\n  address: '127.0.0.1'", MissedNetwork, MissedNothing},
		{"curl: (6) Could not resolve host: example.com", MissedNetwork, MissedNothing},
		{"dial tcp: lookup modules.example.com: no such host", MissedNetwork, MissedNothing},
		{"dial tcp 1.2.3.4:443: socket: permission denied", MissedNetwork, MissedNothing},
		{"listen unix /tmp/s: socket: permission denied", MissedSocket, MissedSocket},
		{"npm error code EAI_AGAIN\nnpm error request to https://x failed, reason: getaddrinfo EAI_AGAIN x", MissedNetwork, MissedNothing},
		{"fatal: unable to access 'https://example.com/': Could not resolve host: example.com", MissedNetwork, MissedNothing},
		{"java.net.SocketException: Permission denied", MissedNetwork, MissedNothing},
		{"java.net.UnknownHostException: jars.example.com", MissedNetwork, MissedNothing},
		{"socket.gaierror: [Errno -3] Temporary failure in name resolution", MissedNetwork, MissedNothing},
		{"ping: socket: Permission denied", MissedNetwork, MissedNothing},
		{"cat: /etc/shadow: Permission denied", MissedNothing, MissedNothing},
		{"PermissionError: [Errno 13] Permission denied: 'a.txt'", MissedNothing, MissedNothing},
		{"Error: EACCES: permission denied, open '/work/a'", MissedNothing, MissedNothing},
		{"2 tests failed", MissedNothing, MissedNothing},
		{"", MissedNothing, MissedNothing},
	} {
		for want, p := range map[*Missed]Policy{&c.without: {}, &c.beside: hosts} {
			if got := missed(p, nil, []byte(c.output)); got != *want {
				t.Errorf("%d hosts, %q: %q, want %q", len(p.Hosts), c.output, got, *want)
			}
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var all []byte
	var end tail
	for i := range 300 {
		part := bytes.Repeat([]byte{byte(i)}, i*7)
		all = append(all, part...)
		if end.add(part); !bytes.Equal(end.end(), all[max(0, len(all)-maxHeard):]) {
			t.Fatalf("after %d bytes the end is wrong", len(all))
		}
	}
	if cap(end.data) > 4*maxHeard {
		t.Errorf("it holds %d bytes", cap(end.data))
	}
}
