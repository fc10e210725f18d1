package mcp

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/door"
	"github.com/pollux-companion/pollux/internal/jsontext"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	tooLarge      = "the request is larger than 64 MiB"
	tooMany       = "too many connections at once for the open files that pollux may have (ulimit -n); end some CLIs, or start the editor or pollux serve with a higher limit"
	// maxFirst is the largest message outside a session, in bytes: an initialize is small.
	maxFirst       = 1 << 20
	noSession      = sessionHeader + " is missing; send initialize first"
	tryAgainHeader = "Retry-After"
)

// routes serves the paths of SPEC T-1 and T-9 to T-11. The door has checked the token already.
func (s *Server) routes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent := s.entered(r)
		if agent == nil {
			w.WriteHeader(http.StatusUnauthorized) // its session has ended since the door looked
			return
		}
		if (agent.Socket || agent.Private) && len(r.Header["Origin"]) > 0 { // neither sends one: it is a browser's
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if agent.Socket {
			s.onlySocket(w, r, agent)
			return
		}
		switch r.URL.Path {
		case "/mcp":
			s.mcp(w, r, agent)
		case "/stream":
			s.webSocket(w, r, agent)
		case "/keep-alive":
			s.keepAlive(w, r)
		case "/write-file":
			s.writeFile(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// onlySocket serves the one path of agents whose sessions are sockets.
func (s *Server) onlySocket(w http.ResponseWriter, r *http.Request, agent *entrance) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	delete(r.Header, sessionHeader)
	s.webSocket(w, r, agent)
}

func (s *Server) mcp(w http.ResponseWriter, r *http.Request, agent *entrance) {
	if version := header(r, versionHeader); version != "" && !slices.Contains(jsonrpc.Versions(), version) {
		answer(w, http.StatusBadRequest, jsonrpc.ErrorData(nil, jsonrpc.CodeVersion,
			"unsupported protocol version "+strconv.Quote(version), supportedVersions(version)))
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, agent)
	case http.MethodGet:
		s.get(w, r, agent)
	case http.MethodDelete:
		if sess := s.session(w, r, agent); sess != nil {
			s.delete(sess)
			status := http.StatusNoContent
			if agent.Private { // Copilot CLI shows its user an error for 204 (SPEC GC-2)
				status = http.StatusOK
			}
			w.WriteHeader(status)
		}
	default:
		w.Header()["Allow"] = []string{"GET, POST, DELETE"}
		answer(w, http.StatusMethodNotAllowed, jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, "use POST, GET or DELETE"))
	}
}

// supportedVersions returns the data of an error with CodeVersion.
func supportedVersions(requested string) string {
	data := append([]byte(`{"supported":["`), strings.Join(jsonrpc.Versions(), `","`)...)
	data = append(data, `"],"requested":`...)
	return string(append(jsontext.AppendString(data, requested), '}'))
}

// header is http.Header.Get, for a key that is in canonical form already.
func header(r *http.Request, key string) string {
	if values := r.Header[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// session returns the session that a request names. When there is none, it answers the request and returns nil.
func (s *Server) session(w http.ResponseWriter, r *http.Request, agent *entrance) *Session {
	id := header(r, sessionHeader)
	if id == "" {
		answer(w, http.StatusBadRequest, jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, noSession))
		return nil
	}
	sess, ready := s.await(r.Context(), agent, id)
	if !ready {
		w.Header()[tryAgainHeader] = []string{"1"}
		answer(w, http.StatusServiceUnavailable, jsonrpc.Error(nil, jsonrpc.CodeBusy, "the companion is still reading what this session had open; try again"))
		return nil
	}
	if sess == nil && s.closing.Load() { // the next companion will know it
		w.Header()[tryAgainHeader] = []string{"1"}
		answer(w, http.StatusServiceUnavailable, jsonrpc.Error(nil, jsonrpc.CodeBusy, "the companion is just ending; try again"))
		return nil
	}
	if sess == nil {
		answer(w, http.StatusNotFound, jsonrpc.Error(nil, jsonrpc.CodeNoSession, "no such session; send initialize for a new one"))
		return nil
	}
	sess.lookAgain(r)
	return sess
}

// answer writes a whole JSON answer with its length, so that it leaves in one
// piece even when it is flushed.
func answer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType()
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func jsonType() []string { return []string{"application/json"} }

// post takes one message, or a batch of them in the oldest protocol.
func (s *Server) post(w http.ResponseWriter, r *http.Request, agent *entrance) {
	if !isJSON(header(r, "Content-Type")) {
		answer(w, http.StatusUnsupportedMediaType, jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json"))
		return
	}
	if !accepts(r, "application/json") {
		answer(w, http.StatusNotAcceptable, jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, "Accept must list application/json and text/event-stream"))
		return
	}
	var sess *Session
	if header(r, sessionHeader) != "" {
		if sess = s.session(w, r, agent); sess == nil {
			return
		}
		if !sess.begin() {
			w.Header()[tryAgainHeader] = []string{"1"}
			answer(w, http.StatusTooManyRequests, jsonrpc.Error(nil, jsonrpc.CodeBusy, "too many requests of this session are in work"))
			return
		}
		defer sess.done()
	}
	limit := int64(door.MaxBody)
	if sess == nil {
		limit = maxFirst
	}
	body, release, err := s.bodies.Read(r.Body, r.ContentLength, limit)
	defer release()
	if sess == nil && errors.Is(err, door.ErrTooLarge) {
		door.Refuse(w, http.StatusBadRequest, string(jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, noSession)))
		return
	}
	if err != nil {
		refuseBody(w, err)
		return
	}
	if jsonrpc.IsBatch(body) {
		s.batch(w, r, agent, sess, body)
		return
	}
	s.single(w, r, agent, sess, body)
}

// refuseBody answers a request whose body was not read to its end.
func refuseBody(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, door.ErrTooLarge):
		door.Refuse(w, http.StatusRequestEntityTooLarge, string(jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, tooLarge)))
	case errors.Is(err, door.ErrBusy):
		w.Header()[tryAgainHeader] = []string{"1"}
		door.Refuse(w, http.StatusServiceUnavailable, string(jsonrpc.Error(nil, jsonrpc.CodeBusy, err.Error())))
	case errors.Is(err, door.ErrNotJSON):
		door.Refuse(w, http.StatusBadRequest, string(jsonrpc.Error(nil, jsonrpc.CodeParse, jsonrpc.ErrSyntax.Error())))
	default:
		door.Refuse(w, http.StatusBadRequest, string(jsonrpc.Error(nil, jsonrpc.CodeParse, "the body ended early")))
	}
}

func (s *Server) single(w http.ResponseWriter, r *http.Request, agent *entrance, sess *Session, body []byte) {
	m, err := agent.decoder.Decode(body)
	switch {
	case err != nil:
		answer(w, http.StatusBadRequest, malformed(m, err))
	case m.Method == jsonrpc.MethodInitialize && m.ID != nil:
		s.initialize(w, r, agent, sess, m)
	case sess == nil && m.Method == jsonrpc.MethodDiscover && m.ID != nil: // a method of newer protocols; initialize comes next (SPEC GC-2)
		answer(w, http.StatusOK, jsonrpc.Error(m.ID, jsonrpc.CodeMethodNotFound, "unknown method; send initialize"))
	case sess == nil:
		s.session(w, r, agent) // answers that the session is missing
	case m.ID == nil || m.Response:
		sess.notified(m)
		w.WriteHeader(http.StatusAccepted)
	default:
		rc := http.NewResponseController(w)
		if agent.Private && m.Method == jsonrpc.MethodToolsCall { // it may wait for the user
			_ = rc.SetReadDeadline(time.Time{})
			_ = rc.SetWriteDeadline(time.Time{})
		}
		sess.handle(r.Context(), m, func(reply []byte) {
			if agent.Private {
				_ = rc.SetWriteDeadline(time.Now().Add(door.RequestTimeout))
			}
			answer(w, http.StatusOK, reply)
			_ = rc.Flush()
		})
	}
}

// malformed answers a message that Decode has refused.
func malformed(m jsonrpc.Message, err error) []byte {
	if errors.Is(err, jsonrpc.ErrSyntax) {
		return jsonrpc.Error(nil, jsonrpc.CodeParse, err.Error())
	}
	return jsonrpc.Error(m.ID, jsonrpc.CodeInvalidRequest, err.Error())
}

// batch serves an array of messages one after the other. Protocols after 2025-03-26
// have no batches.
func (s *Server) batch(w http.ResponseWriter, r *http.Request, agent *entrance, sess *Session, body []byte) {
	if sess == nil {
		s.session(w, r, agent)
		return
	}
	if !sess.hasBatches(header(r, versionHeader)) {
		answer(w, http.StatusBadRequest, jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, "this protocol version has no batches"))
		return
	}
	parts, err := jsonrpc.SplitBatch(body, maxBatch)
	if err != nil {
		answer(w, http.StatusBadRequest, malformed(jsonrpc.Message{}, err))
		return
	}
	reply := []byte{'['}
	for _, part := range parts {
		sess.serve(r.Context(), part, func(one []byte) {
			if len(reply) > 1 {
				reply = append(reply, ',')
			}
			reply = append(reply, one...)
		})
	}
	if len(reply) == 1 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer(w, http.StatusOK, append(reply, ']'))
}

func (s *Session) hasBatches(version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(version, s.protocol) == "2025-03-26"
}

// initialize opens a session (SPEC T-1).
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, agent *entrance, sess *Session, m jsonrpc.Message) {
	if sess != nil {
		answer(w, http.StatusBadRequest, jsonrpc.Error(m.ID, jsonrpc.CodeInvalidRequest, "this session is initialized already"))
		return
	}
	sess, reply := s.open(r, agent, m)
	if sess == nil {
		w.Header()[tryAgainHeader] = []string{"5"}
		answer(w, http.StatusServiceUnavailable, reply)
		return
	}
	w.Header()[sessionHeader] = []string{sess.id}
	answer(w, http.StatusOK, reply)
}

// get opens the session's event stream (SPEC T-5 … T-7).
func (s *Server) get(w http.ResponseWriter, r *http.Request, agent *entrance) {
	if !accepts(r, "text/event-stream") {
		answer(w, http.StatusNotAcceptable, jsonrpc.Error(nil, jsonrpc.CodeInvalidRequest, "Accept must list text/event-stream"))
		return
	}
	sess := s.session(w, r, agent)
	if sess == nil {
		return
	}
	sess.lookFor(r)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		answer(w, http.StatusInternalServerError, jsonrpc.Error(nil, jsonrpc.CodeInternal, "this connection cannot carry a stream"))
		return
	}
	st := newStream(sess, newEventConn(conn))
	if !sess.attach(st, []byte(streamHead), header(r, "Last-Event-Id")) {
		_ = conn.Close() // the session has just ended; the next GET says so
		return
	}
	go st.watch(conn)
}

// streamHead begins an event stream. It has neither a length nor chunks, so the end of
// the connection is an orderly end of the stream, even when this process is killed. The
// CLI then comes back without a message to its user (SPEC T-5).
const streamHead = "HTTP/1.1 200 OK\r\n" +
	"Content-Type: text/event-stream\r\n" +
	"Cache-Control: no-cache, no-transform\r\n" +
	"X-Accel-Buffering: no\r\n" +
	"Connection: close\r\n\r\n"

// watch waits for the end of an event stream's connection; its peer sends nothing more
// on it.
func (st *stream) watch(r io.Reader) {
	_, _ = r.Read(make([]byte, 1))
	st.close()
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// accepts says whether a request's Accept, if any, allows a type. Quality values are ignored.
func accepts(r *http.Request, media string) bool {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(media, "/")
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			one, _, _ = strings.Cut(one, ";")
			switch strings.ToLower(strings.TrimSpace(one)) {
			case media, family + "/*", "*/*":
				return true
			}
		}
	}
	return false
}
