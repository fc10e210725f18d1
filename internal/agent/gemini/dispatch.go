package gemini

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
)

// open makes the session that an initialize asks for, and its answer. Without a
// session the answer says why.
func (s *Server) open(r *http.Request, m wire.Message) (*session, []byte) {
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
		ClientInfo      struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	}
	_ = json.Unmarshal(m.Params, &params) // whatever cannot be read stays unknown
	sess := s.create("", 0)
	if sess == nil {
		return nil, wire.Error(m.ID, wire.CodeBusy, "too many sessions, or the companion is stopping; try again later")
	}
	version := params.ProtocolVersion
	if !slices.Contains(wire.Versions(), version) {
		version = wire.Versions()[0]
	}
	sess.introduce(r, cut(params.ClientInfo.Name), cut(params.ClientInfo.Version), version)
	return sess, wire.Initialized(m.ID, version, s.o.Version)
}

// cut bounds what a peer says of itself: it is shown and logged.
func cut(s string) string { return s[:min(len(s), 64)] }

// serve decodes and handles one message of a batch or a WebSocket.
func (s *session) serve(ctx context.Context, body []byte, reply func([]byte)) {
	m, err := wire.Decode(body)
	switch {
	case err != nil:
		reply(malformed(m, err))
	case m.ID == nil || m.Response:
		s.notified(m)
	case m.Method == wire.MethodInitialize:
		reply(wire.Error(m.ID, wire.CodeInvalidRequest, "this session is initialized already"))
	default:
		s.handle(ctx, m, reply)
	}
}

// handle answers a request by exactly one call of reply.
func (s *session) handle(ctx context.Context, m wire.Message, reply func([]byte)) {
	switch m.Method {
	case wire.MethodPing:
		reply(wire.Result(m.ID, `{}`))
	case wire.MethodToolsList:
		reply(wire.Result(m.ID, wire.Tools))
	case wire.MethodToolsCall:
		s.call(ctx, m, reply)
	default:
		reply(wire.Error(m.ID, wire.CodeMethodNotFound, "unknown method"))
	}
}

// notified takes a notification, or a response that nobody waits for.
func (s *session) notified(m wire.Message) {
	if m.Method != wire.MethodCancelled {
		return
	}
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.id == string(params.RequestID) {
			c.cancel()
		}
	}
}
