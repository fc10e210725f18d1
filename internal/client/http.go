package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/proc"
)

// Habits of the CLI's library and of Node's fetch.
const (
	firstRetry  = time.Second
	lastRetry   = 30 * time.Second
	retryGrowth = 1.5
	maxRetries  = 2
	// silenceLimit is how long a body may be silent before it counts as broken.
	silenceLimit = 300 * time.Second
	// maxAnswer bounds the body of an answer, in bytes; the CLI has no bound.
	maxAnswer = 128 << 20
)

// An httpSession is one MCP session over Streamable HTTP. Goroutines: one for each open
// event stream, and one that waits to open it again; close ends and awaits them.
type httpSession struct {
	url, token string
	client     *http.Client
	owner      owner
	ctx        context.Context //nolint:containedctx // the life of the session
	cancel     context.CancelFunc
	streams    sync.WaitGroup
	book       book

	mu       sync.Mutex // guards the fields below
	id       string     // Mcp-Session-Id
	protocol string
	retry    time.Duration // what the server asks for; -1 for none
	ready    bool          // initialised: notifications are handled
	standing bool          // the CLI has connected: faults count
	closed   bool
}

// direct returns a transport that bypasses every proxy, as the CLI does for its editor.
func direct() *http.Transport {
	return &http.Transport{
		DialContext:           proc.DialOwn,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       4 * time.Second, // Node's
		ResponseHeaderTimeout: silenceLimit,
		DisableCompression:    true,
	}
}

// An owner is told about a session.
type owner interface {
	// notified handles a notification; its error is a fault of the session.
	notified(method string, params []byte) error
	// faulted reports an error. Before the session is established the CLI forgets it again.
	faulted(err error, standing bool)
	// ended: the other side has closed the session.
	ended()
}

// open starts a session by one way, under the name of a release.
func open(ctx context.Context, way Way, version string, transport http.RoundTripper, o owner) (session, error) {
	if way.Port == 0 {
		return openStdio(ctx, way, version, o)
	}
	if transport == nil {
		transport = direct()
	}
	s := &httpSession{
		url: way.String(), token: way.Token, owner: o, retry: -1,
		client: &http.Client{Transport: transport},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.start(ctx, version); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *httpSession) start(ctx context.Context, version string) error {
	limited, cancel := context.WithTimeout(ctx, defaultLimit)
	defer cancel()
	data, err := s.request(limited, jsonrpc.MethodInitialize, initialize{
		ProtocolVersion: protocol, ClientInfo: implementation{"streamable-http-client", version},
	})
	if err != nil {
		return err
	}
	negotiated, err := parseInitialize(data)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.protocol = negotiated
	s.ready = true
	s.mu.Unlock()
	note, _ := encode(outgoing{Method: jsonrpc.MethodInitialized, JSONRPC: "2.0"})
	if err := s.post(limited, note); err != nil {
		return err
	}
	s.mu.Lock()
	s.standing = true
	s.mu.Unlock()
	return nil
}

// fault disconnects the CLI. A fault before the connection is established is forgotten.
func (s *httpSession) fault(err error) {
	s.mu.Lock()
	standing := s.standing
	s.mu.Unlock()
	s.owner.faulted(err, standing)
}

// spawn runs f on a goroutine that close awaits. After close it does nothing.
func (s *httpSession) spawn(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.streams.Go(f)
	}
}

// parseInitialize checks the answer to initialize and returns its version.
func parseInitialize(data []byte) (string, error) {
	v, err := parseJSON(data)
	if err != nil {
		return "", err
	}
	m, err := object(v, "result")
	if err != nil {
		return "", err
	}
	if _, err := object(m["capabilities"], "capabilities"); err != nil {
		return "", err
	}
	info, err := object(m["serverInfo"], "serverInfo")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"name", "version"} {
		if text, err := optional[string](info, name); err != nil || text == nil {
			return "", fmt.Errorf("serverInfo has no %s", name)
		}
	}
	version, _ := m["protocolVersion"].(string)
	if !slices.Contains(protocols(), version) {
		return "", fmt.Errorf("Server's protocol version is not supported: %s", version)
	}
	return version, nil
}

func (s *httpSession) request(ctx context.Context, method string, params any) ([]byte, error) {
	return s.book.ask(ctx, method, params, s.post)
}

func (s *httpSession) header(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		r.Header.Set("Mcp-Session-Id", s.id)
	}
	if s.protocol != "" {
		r.Header.Set("Mcp-Protocol-Version", s.protocol)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	r.Header.Set("User-Agent", "undici")
}

// post sends one message. Any failure is a fault of the session.
func (s *httpSession) post(ctx context.Context, message []byte) error {
	err := s.exchange(ctx, message)
	if err != nil && ctx.Err() == nil && s.ctx.Err() == nil {
		s.fault(err)
	}
	return err
}

func (s *httpSession) exchange(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(message))
	if err != nil {
		return err
	}
	s.header(r)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := s.client.Do(r)
	if err != nil {
		return hideURL(err)
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		s.mu.Lock()
		s.id = id
		s.mu.Unlock()
	}
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		text, _ := io.ReadAll(io.LimitReader(res.Body, 2000))
		return &StatusError{res.StatusCode, fmt.Sprintf("Error POSTing to endpoint (HTTP %d): %s", res.StatusCode, bytes.TrimSpace(text))}
	case res.StatusCode == http.StatusAccepted:
		if bytes.Contains(message, []byte(`"`+jsonrpc.MethodInitialized+`"`)) && !bytes.Contains(message, []byte(`"id":`)) {
			s.listen("", 0)
		}
		return nil
	}
	if !bytes.Contains(message, []byte(`"id":`)) {
		return nil // the response to a notification is ignored
	}
	return s.answer(res)
}

// A messageError is a fault of one message; the connection continues.
type messageError struct{ Err error }

func (e *messageError) Error() string { return e.Err.Error() }
func (e *messageError) Unwrap() error { return e.Err }

// A StatusError is a response with a status other than success.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string { return e.Message }

// hideURL removes the address that net/http puts in front.
func hideURL(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}

func (s *httpSession) answer(res *http.Response) error {
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.Contains(kind, "text/event-stream"):
		return readEvents(res.Body, s.setRetry, func(e sseEvent) { s.event(e) })
	case strings.Contains(kind, "application/json"):
		data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return err
		}
		return s.batch(data)
	}
	return fmt.Errorf("Streamable HTTP error: Unexpected content type: %s", kind)
}

// batch takes one message or a list of them.
func (s *httpSession) batch(data []byte) error {
	for _, one := range splitBatch(data) {
		m, err := parseMessage(one)
		if err != nil {
			return err
		}
		s.handle(m)
	}
	return nil
}

func (s *httpSession) setRetry(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = d
}

func (s *httpSession) event(e sseEvent) {
	if e.name != "" && e.name != "message" {
		return
	}
	m, err := parseMessage(e.data)
	if err != nil {
		s.fault(&messageError{err})
		return
	}
	s.handle(m)
}

// take handles one message from the companion.
func (s *httpSession) handle(m incoming) {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	handleMessage(m, ready, &s.book, s.owner.notified, s.fault, func(reply []byte) {
		s.spawn(func() { _ = s.post(s.ctx, reply) })
	})
}

// take handles a message as the library does. Responses go to their callers, notifications to notified once the
// session is ready; a ping is answered, any other request refused.
func handleMessage(m incoming, ready bool, b *book, notified func(string, []byte) error, fault func(error), reply func([]byte)) {
	switch m.kind {
	case isResponse:
		if err := b.answered(m); err != nil {
			fault(&messageError{err})
		}
	case isNotification:
		if !ready {
			return
		}
		params := []byte(m.params)
		if m.bare {
			params = []byte("null") // the editor's notifications must have params
		}
		if err := notified(m.method, params); err != nil {
			fault(&messageError{err})
		}
	case isRequest:
		data, _ := encode(replyTo(m))
		reply(data)
	}
}

func replyTo(m incoming) map[string]any {
	answer := map[string]any{"jsonrpc": "2.0", "id": m.id}
	if m.method == jsonrpc.MethodPing {
		answer["result"] = struct{}{}
	} else {
		answer["error"] = map[string]any{"code": jsonrpc.CodeMethodNotFound, "message": "Method not found"}
	}
	return answer
}

// listen opens the event stream in its own goroutine.
func (s *httpSession) listen(lastID string, attempt int) {
	s.spawn(func() { s.stream(lastID, attempt) })
}

// stream reads event streams, one after the other, until the session ends or the library gives up.
func (s *httpSession) stream(lastID string, attempt int) {
	first := attempt == 0 && lastID == ""
	for {
		id, opened, err := s.oneStream(lastID)
		if s.ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fault(err)
		}
		switch {
		case opened:
			lastID, attempt = id, 0
		case err == nil || first:
			return // the companion has no stream, or the first one failed to open: the library does not retry
		default:
			attempt++
		}
		first = false
		if attempt >= maxRetries {
			s.fault(fmt.Errorf("Maximum reconnection attempts (%d) exceeded.", maxRetries))
			return
		}
		if !s.pause(attempt) {
			return
		}
	}
}

func (s *httpSession) pause(attempt int) bool {
	s.mu.Lock()
	wait := s.retry
	s.mu.Unlock()
	if wait < 0 {
		wait = min(time.Duration(float64(firstRetry)*math.Pow(retryGrowth, float64(attempt))), lastRetry)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// oneStream opens and reads one event stream. opened reports that it opened; err is nil at its clean end.
func (s *httpSession) oneStream(lastID string) (id string, opened bool, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return lastID, false, err
	}
	s.header(r)
	r.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := s.client.Do(r)
	if err != nil {
		return lastID, false, hideURL(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusMethodNotAllowed {
		return lastID, false, nil
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return lastID, false, &StatusError{res.StatusCode, "Streamable HTTP error: Failed to open SSE stream: " + http.StatusText(res.StatusCode)}
	}
	quiet := time.AfterFunc(silenceLimit, cancel)
	defer quiet.Stop()
	body := &watched{res.Body, quiet}
	err = readEvents(body, s.setRetry, func(e sseEvent) {
		if e.id != "" {
			id = e.id
		}
		s.event(e)
	})
	if err != nil {
		err = fmt.Errorf("SSE stream disconnected: %w", err)
	}
	return id, true, err
}

// watched resets a timer when bytes arrive.
type watched struct {
	r     io.Reader
	quiet *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.quiet.Reset(silenceLimit)
	}
	return n, err
}

func (s *httpSession) close() {
	s.mu.Lock()
	s.closed, s.standing = true, false
	s.mu.Unlock()
	s.cancel()
	s.book.end(errors.New("Connection closed"))
	s.streams.Wait()
	s.client.CloseIdleConnections()
}

func (s *httpSession) leave(ctx context.Context) {
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.url, nil)
	if err != nil {
		return
	}
	s.header(r)
	if res, err := s.client.Do(r); err == nil {
		res.Body.Close()
	}
}
