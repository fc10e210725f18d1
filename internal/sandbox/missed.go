package sandbox

import (
	"regexp"
	"sync"
)

// Missed is what a failed command seems to have missed, guessed from its output: the kernel reports no refused
// socket.
type Missed string

// What a command can miss.
const (
	MissedNothing Missed = ""
	// MissedNetwork is any socket, or a host's address: the policy names no host.
	MissedNetwork Missed = "network"
	// MissedSocket is a unix socket with a name. No policy allows it, because it could reach the machine's services.
	MissedSocket Missed = "socket"
)

// maxHeard bounds how much of the end of each output is searched, in bytes.
const maxHeard = 16 * kib

var (
	// refusedSocket matches how programs report a socket that the filter refused, noNames a name without a resolver.
	refusedSocket = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)\b(socket|listen|connect|bind)\b[^\n]{0,60}(permission denied|\bEACCES\b|\(13\))|\bEACCES\b[^\n]{0,80}\b(listen|connect)\b|syscall: '(listen|connect)'` +
			`|socket\.py", line \d+.{0,300}Errno 13\]|SocketException: Permission denied|socket[^\n]{0,40}os error 13|can't create socket`)
	})
	noNames = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)could not resolve (host|proxy)|couldn't resolve host|temporary failure in name resolution|name or service not known|\bEAI_AGAIN\b|getaddrinfo|UnknownHostException|` +
			`lookup [^\n]{1,253}: |network is unreachable|unable to resolve host|failed to lookup address`)
	})
	// unixSocket matches what says that a refused socket was a unix socket.
	unixSocket = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`AF_UNIX|multiprocessing/(forkserver|managers|connection)\.py|(EACCES|permission denied):? [^\n]{0,20}/|address: '/|UnixListener|UnixStream|(listen|dial) unix|\.sock\b`)
	})
)

// missed guesses what a command missed that wrote these ends of its outputs and failed.
func missed(p Policy, outputs ...[]byte) Missed {
	for _, text := range outputs {
		refused := refusedSocket().Match(text)
		switch {
		case refused && unixSocket().Match(text):
			return MissedSocket
		case len(p.Hosts) == 0 && (refused || noNames().Match(text)):
			return MissedNetwork
		}
	}
	return MissedNothing
}

// A tail keeps the end of what was written to it.
type tail struct{ data []byte }

func (t *tail) add(p []byte) {
	t.data = append(t.data, p[max(0, len(p)-maxHeard):]...)
	if len(t.data) > 2*maxHeard {
		t.data = append(t.data[:0], t.data[len(t.data)-maxHeard:]...)
	}
}

// end returns the last bytes that were written, at most maxHeard.
func (t *tail) end() []byte { return t.data[max(0, len(t.data)-maxHeard):] }
