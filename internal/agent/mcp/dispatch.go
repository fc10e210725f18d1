package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/words"
)

// open makes a session for an initialize, and returns its answer. When it can make
// none, the session is nil and the answer says why.
func (s *Server) open(r *http.Request, agent *entrance, m jsonrpc.Message) (*Session, []byte) {
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
		ClientInfo      struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
		Capabilities struct {
			Roots *struct{} `json:"roots"`
		} `json:"capabilities"`
	}
	_ = json.Unmarshal(m.Params, &params) // fields that cannot be read stay unknown
	heir := agent.isOlder(r)
	if other := agent.also[params.ClientInfo.Name]; other != nil {
		agent = other
	}
	sess := s.create(agent, "", s.numberOf(r))
	if sess == nil {
		return nil, jsonrpc.Error(m.ID, jsonrpc.CodeBusy, "too many sessions, or the companion is stopping; try again later")
	}
	sess.heir = heir // before anybody can know the session's id
	version := params.ProtocolVersion
	if !slices.Contains(jsonrpc.Versions(), version) {
		version = jsonrpc.Versions()[0]
	}
	sess.introduce(r, Brief(params.ClientInfo.Name), Brief(params.ClientInfo.Version), version, params.Capabilities.Roots != nil)
	return sess, jsonrpc.Initialized(m.ID, version, s.o.Version)
}

// Brief shortens a text that a peer sent, before it is shown or logged.
func Brief(s string) string { return words.Clip(s, 64) }

// serve decodes and handles one message of a batch or a WebSocket.
func (s *Session) serve(ctx context.Context, body []byte, reply func([]byte)) {
	m, err := s.agent.decoder.Decode(body)
	switch {
	case err != nil:
		reply(malformed(m, err))
	case m.ID == nil || m.Response:
		s.notified(m)
	case m.Method == jsonrpc.MethodInitialize:
		reply(jsonrpc.Error(m.ID, jsonrpc.CodeInvalidRequest, "this session is initialized already"))
	default:
		s.handle(ctx, m, reply)
	}
}

// handle answers a request by exactly one call of reply.
func (s *Session) handle(ctx context.Context, m jsonrpc.Message, reply func([]byte)) {
	switch m.Method {
	case jsonrpc.MethodPing:
		reply(jsonrpc.Result(m.ID, `{}`))
	case jsonrpc.MethodToolsList:
		reply(jsonrpc.Result(m.ID, s.agent.Dialect.Tools()))
		s.tellAgain()
	case jsonrpc.MethodToolsCall:
		s.agent.Dialect.Call(ctx, s, m, reply)
	default:
		reply(jsonrpc.Error(m.ID, jsonrpc.CodeMethodNotFound, "unknown method"))
	}
}

// notified handles a notification, or the response to roots/list or a ping.
func (s *Session) notified(m jsonrpc.Message) {
	switch {
	case m.Response && string(m.ID) == rootsID:
		s.heardRoots(m)
		return
	case m.Response && m.ID != nil:
		s.answered(string(m.ID))
		return
	case m.Method == jsonrpc.MethodInitialized:
		s.askRoots()
		return
	case m.Method != jsonrpc.MethodCancelled:
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
			c.end()
		}
	}
}
