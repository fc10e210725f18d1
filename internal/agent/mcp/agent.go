package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/door"
)

// An Agent is one kind of CLI that a Server lets in.
type Agent struct {
	// Name is what commands and settings call it: "gemini".
	Name string
	// Label is what a person calls it: "Gemini CLI". Its sessions add their number.
	Label string
	// Token is what each of its requests must carry (SPEC A-1): in TokenHeader, behind TokenScheme, when TokenHeader is not "" (in
	// canonical form); otherwise as a bearer token in Authorization. It opens no other agent's sessions.
	Token                    string
	TokenHeader, TokenScheme string
	// ProcessHeader is the header in which it says, at the start of a session, which process it is; "" for none.
	ProcessHeader string
	// Private: the agent connects by a listener for this user alone (package ownpipe), which no other agent uses. No Origin is
	// welcome. Its calls may wait for the user as long as their connection lives. Its sessions cannot be resumed.
	Private bool
	// Socket: each session is one WebSocket at /, from its first message to its end, and cannot be resumed. No Origin
	// is welcome.
	Socket bool
	// Also are agents that use this agent's token, and are told apart by the clientInfo.name that they send. Their own Token
	// and Socket do not count.
	Also map[string]Agent
	// Older are its tokens of earlier lives. Each serves the sessions that existed then, for their own processes, and for
	// Options.OlderFor a new session of such a process (SPEC A-1).
	Older []string
	// SessionKey signs its session ids, so that a restarted companion recognises its own (SPEC L-3). It has at least 32
	// random bytes, different for each agent; nil makes a fresh one.
	SessionKey []byte
	Dialect    Dialect
	// KeepJSON has the dialect get large arguments as JSON too (jsontext.Text), to pass them on.
	KeepJSON bool
}

// A Dialect is one agent's own part: its tools, and the notifications that it understands. Its methods may be called from any
// goroutine. Methods without a ctx must not block.
type Dialect interface {
	// Tools is the result of tools/list, as JSON.
	Tools() string
	// Arguments are the names of the tools' string arguments that jsonrpc.Call should decode.
	Arguments() []string
	// Call runs the tool of a tools/call, and answers by exactly one call of reply. What the agent got wrong in its
	// arguments should be an answer that its model can read, not a protocol error.
	Call(ctx context.Context, s *Session, m jsonrpc.Message, reply func([]byte))
	// Context returns the notification that says what the user looks at.
	Context(snap *state.Snapshot) []byte
	// Outcomes returns which notifications tell a session that one of its diffs has ended, in order: Accepted,
	// Rejected, or words of the dialect's own.
	Outcomes(how review.Kind) (as []string)
	// Outcome returns one of these notifications. key is the diff's; content is the final text, "" for Rejected.
	Outcome(as, key, content string) []byte
}

// An entrance is an Agent of a running Server.
type entrance struct {
	Agent

	decoder jsonrpc.Decoder
	also    map[string]*entrance
	current func(*http.Request) bool
	older   map[[sha256.Size]byte]bool // tokens by their hashes, so that the time of a look-up tells nothing about a token
	context atomic.Pointer[frame]      // the newest published context, encoded once for all of its sessions
}

func newEntrance(a Agent) *entrance {
	e := &entrance{Agent: a, decoder: jsonrpc.Decoder{Arguments: a.Dialect.Arguments(), KeepJSON: a.KeepJSON}, also: map[string]*entrance{}, current: door.Bearer(a.Token), older: map[[sha256.Size]byte]bool{}}
	if len(e.SessionKey) == 0 {
		e.SessionKey = make([]byte, 32)
		_, _ = rand.Read(e.SessionKey) // never fails
	}
	for _, token := range a.Older {
		e.older[sha256.Sum256([]byte(token))] = true
	}
	if a.TokenHeader != "" {
		want := []byte(a.TokenScheme + a.Token)
		e.current = func(r *http.Request) bool {
			return a.Token != "" && len(r.Header[a.TokenHeader]) == 1 && subtle.ConstantTimeCompare([]byte(r.Header[a.TokenHeader][0]), want) == 1
		}
	}
	for client, other := range a.Also {
		other.Socket = a.Socket
		e.also[client] = newEntrance(other)
	}
	return e
}

// everyone lists the agents, including those in Also.
func (s *Server) everyone() (all []*entrance) {
	for _, e := range s.agents {
		all = append(all, e)
		all = slices.AppendSeq(all, maps.Values(e.also))
	}
	return all
}

// entered returns the agent that a request's token belongs to, nil for none. The token is the current one, or an older one
// that still counts.
func (s *Server) entered(r *http.Request) *entrance {
	private := isPrivate(r)
	for _, e := range s.agents {
		if e.Private == private && e.current(r) {
			return e
		}
	}
	for _, e := range s.agents {
		if !e.Private && !private && e.isOlder(r) && s.inherited(e, r) {
			return e
		}
	}
	return nil
}

// isPrivate says whether a request came by a private socket or pipe, whose listener lets in this user alone.
func isPrivate(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && (addr.Network() == "unix" || addr.Network() == "pipe")
}

// isOlder says whether a request brings a token of the agent's earlier lives.
func (e *entrance) isOlder(r *http.Request) bool {
	token := door.BearerOf(r)
	if e.TokenHeader != "" {
		token = header(r, e.TokenHeader)
	}
	return e.older[sha256.Sum256([]byte(token))]
}
