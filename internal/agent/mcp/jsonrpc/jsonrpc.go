// Package jsonrpc reads and writes MCP's JSON-RPC 2.0 messages between an agent and a companion: requests, whose
// arguments may be many megabytes, and their responses. It is pure: no I/O, no clock.
package jsonrpc

import (
	"errors"

	"github.com/pollux-companion/pollux/internal/jsontext"
)

// Methods of MCP.
const (
	MethodInitialize = "initialize"
	MethodPing       = "ping"
	// MethodDiscover begins a session in drafts of the next protocol version.
	MethodDiscover  = "server/discover"
	MethodToolsList = "tools/list"
	MethodToolsCall = "tools/call"
	MethodCancelled = "notifications/cancelled"
	// MethodInitialized says that the client is ready to receive.
	MethodInitialized = "notifications/initialized"
	// MethodRootsList asks a client in which folders it works.
	MethodRootsList = "roots/list"
)

// JSON-RPC and MCP error codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	// CodeBusy: a bound of the companion is reached (SPEC A-4).
	CodeBusy = -32000
	// CodeNoSession: the session is unknown or has ended.
	CodeNoSession = -32001
	// CodeVersion is MCP's UnsupportedProtocolVersion.
	CodeVersion = -32022
)

// Versions lists MCP's protocol versions with sessions, newest first (SPEC T-1). Later versions have neither sessions
// nor a stream that could carry ide/*.
func Versions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26"} }

// Errors of Decode. The caller answers them with CodeParse and CodeInvalidRequest.
var (
	// ErrSyntax: not JSON, not UTF-8, or nested deeper than jsontext.MaxDepth.
	ErrSyntax = errors.New("the body is not valid JSON")
	// ErrInvalid: JSON, but not a JSON-RPC 2.0 message.
	ErrInvalid = errors.New("the message is not valid JSON-RPC 2.0")
)

// A Message is one decoded JSON-RPC message: a request (Method and ID), a notification (Method alone) or a response.
type Message struct {
	// ID is the request's id as raw JSON, a string or a number; nil when absent.
	ID     []byte
	Method string
	// Params is raw JSON, nil when absent; not set for tools/call.
	Params []byte
	// Call holds the params of tools/call.
	Call Call
	// Response is set for a message with a result or an error instead of a method.
	Response bool
	// Result is the raw JSON of a response's result; nil when absent.
	Result []byte
}

// A Call holds the params of tools/call, with the arguments that Decode was asked for.
type Call struct {
	Name jsontext.Text
	// Arguments reports that arguments were given, as an object.
	Arguments bool

	names []string
	texts []jsontext.Text
}

// Text returns the string argument with the given name, if Decode was asked for it.
func (c *Call) Text(name string) jsontext.Text {
	for i, n := range c.names {
		if n == name && i < len(c.texts) {
			return c.texts[i]
		}
	}
	return jsontext.Text{}
}
