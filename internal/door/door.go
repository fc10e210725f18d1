// Package door guards an HTTP listener on loopback. It turns foreign Hosts, foreign
// Origins and missing credentials away on the headers alone, and bounds every size
// and wait of a peer (SPEC ).
package door

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// The bounds that every listener shares (SPEC A-4; docs/limits.md).
const (
	// maxHeader is the size of a request's headers in bytes.
	maxHeader = 32 << 10
	// MaxBody is the size of a request's body in bytes (SPEC T-4).
	MaxBody = 64 << 20
	// HeaderTimeout is how long a connection may take over its headers.
	HeaderTimeout = 10 * time.Second
	// RequestTimeout is how long a request may take to arrive, how long its answer may
	// take to leave, and how long a connection may idle in between.
	RequestTimeout = 30 * time.Second
	// maxConns is the number of connections at one time; the next one gets 503. It is smaller where few descriptors are allowed:
	// see Options.Eighths.
	maxConns = 8192
	// MaxStrangers is the number of connections without a request that brought a credential. The next one ends the
	// oldest of them. The number is smaller where few descriptors are allowed. At a door without a credential every
	// connection stays a stranger.
	MaxStrangers = 512
)

// Options configure a Door.
type Options struct {
	// Credential says whether a request's headers carry what this listener asks for; nil
	// asks for nothing. It must not read the body. It is called from many goroutines.
	Credential func(*http.Request) bool
	// Origins lists the Origins that are welcome besides the listener's own
	// ("http://127.0.0.1:8080").
	Origins []string
	// TooLarge is the body of a 413, application/json; "" for none.
	TooLarge string
	// Full is the body of a 503, application/json, when there are too many connections; "" for none.
	Full string
	// Eighths is the listener's part of the connections that the process may have; 0 means 2.
	Eighths int
	// Log gets panics and refusals; nil discards.
	Log *slog.Logger
}

// A Door guards one HTTP server. Its methods may be called from any goroutine; it
// starts none.
type Door struct {
	o     Options
	conns conns

	mu      sync.RWMutex
	hosts   map[string]bool
	origins map[string]bool
}

// New returns a door that admits no Host yet.
func New(o Options) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{o: o, hosts: map[string]bool{}, origins: map[string]bool{}}
	d.conns.bound(cmp.Or(o.Eighths, 2), o.Credential != nil)
	for _, origin := range o.Origins {
		d.origins[strings.ToLower(origin)] = true
	}
	return d
}

// Admit makes the names of a listener's address welcome as Host and as Origin: the
// address itself, localhost when it is on loopback, and each of extra with its port.
// It fails for an address that is not one of this machine's own (0.0.0.0, ::; SPEC
// T-8). A socket or pipe has no name: its clients say localhost.
func (d *Door) Admit(addr net.Addr, extra ...string) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		d.mu.Lock()
		d.hosts["localhost"] = true
		d.mu.Unlock()
		return d.admit(addr.String())
	}
	if tcp.IP.IsUnspecified() {
		return fmt.Errorf("refusing to serve on every interface (%s): name one address of this machine instead", addr)
	}
	hosts := append([]string{tcp.IP.String()}, extra...)
	if tcp.IP.IsLoopback() {
		hosts = append(hosts, "localhost")
	}
	for _, host := range hosts {
		if err := d.admit(net.JoinHostPort(host, fmt.Sprint(tcp.Port))); err != nil {
			return err
		}
	}
	return nil
}

func (d *Door) admit(hostport string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	hostport = strings.ToLower(hostport)
	d.hosts[hostport] = true
	d.origins["http://"+hostport] = true
	return nil
}

// Server returns an HTTP server with the door's bounds before next. Its
// Serve may be called for several listeners.
func (d *Door) Server(next http.Handler) *http.Server {
	return &http.Server{
		Handler:           d.handler(next),
		ReadHeaderTimeout: HeaderTimeout,
		ReadTimeout:       RequestTimeout,
		WriteTimeout:      RequestTimeout,
		IdleTimeout:       RequestTimeout,
		MaxHeaderBytes:    maxHeader - 4096, // net/http itself adds 4096
		ConnState:         d.conns.state,
		ConnContext:       d.conns.context,
		ErrorLog:          slog.NewLogLogger(d.o.Log.Handler(), slog.LevelDebug),
		// Otherwise net/http answers "OPTIONS *" itself, past the door.
		DisableGeneralOptionsHandler: true,
	}
}

// handler lets a request through to next, or answers it from its headers.
func (d *Door) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := d.verdict(r); status != 0 {
			d.refuse(w, r, status)
			return
		}
		if d.o.Credential != nil { // a door that asks for nothing has nothing proven
			d.conns.prove(r.Context())
		}
		defer d.conns.left(r.Context())
		defer d.recover(w, r)
		next.ServeHTTP(w, r)
	})
}

// verdict returns 0 for a welcome request, otherwise the status of its refusal. It does
// not touch the body.
func (d *Door) verdict(r *http.Request) int {
	if !d.welcome(r) {
		return http.StatusForbidden
	}
	if d.o.Credential != nil && !d.o.Credential(r) {
		return http.StatusUnauthorized
	}
	if r.ContentLength > MaxBody {
		return http.StatusRequestEntityTooLarge
	}
	if known := connOf(r.Context()); known != nil && known.full {
		return http.StatusServiceUnavailable
	}
	return 0
}

// welcome checks Host and Origin, against DNS rebinding and foreign pages (SPEC A-3).
func (d *Door) welcome(r *http.Request) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !d.hosts[r.Host] && !d.hosts[strings.ToLower(r.Host)] {
		return false
	}
	for _, origin := range r.Header["Origin"] {
		if !d.origins[strings.ToLower(origin)] {
			return false
		}
	}
	return true
}

// refuse answers a request from its headers.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, status int) {
	d.o.Log.Debug("refused", "status", status, "method", r.Method, "remote", r.RemoteAddr)
	body := map[int]string{http.StatusRequestEntityTooLarge: d.o.TooLarge, http.StatusServiceUnavailable: d.o.Full}[status]
	Refuse(w, status, body)
}

// outstanding is how long the door waits for the rest of a refused body. A small body
// that is on its way then arrives, and the answer is not lost in a reset.
const outstanding = 250 * time.Millisecond

// Refuse answers a request whose body was not read, and ends the connection. body is
// JSON, or "" for none. Without "Connection: close", net/http would wait for the rest of
// a small body before it sends the answer; without the deadline, it would wait after it
// for a hostile peer that never sends the rest.
func Refuse(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h["Connection"] = []string{"close"}
	if status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{"Bearer"}
	}
	if body != "" {
		h["Content-Type"] = []string{"application/json"}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(outstanding))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// recover keeps a panic of one request from ending the process, and logs where it was.
func (d *Door) recover(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil || errors.Is(asError(p), http.ErrAbortHandler) {
		return
	}
	d.o.Log.Error("a request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	w.Header()["Connection"] = []string{"close"}
	w.WriteHeader(http.StatusInternalServerError)
}

func asError(p any) error {
	err, _ := p.(error)
	return err
}

// Bearer returns a check for the credential "Authorization: Bearer <token>". It compares
// in constant time (SPEC ). An empty token lets nobody in.
func Bearer(token string) func(*http.Request) bool {
	want := []byte(token)
	return func(r *http.Request) bool {
		return len(want) > 0 && subtle.ConstantTimeCompare([]byte(BearerOf(r)), want) == 1
	}
}

// BearerOf returns the token of a request's "Authorization: Bearer <token>"; "" for none.
func BearerOf(r *http.Request) string {
	headers := r.Header["Authorization"]
	if len(headers) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}
