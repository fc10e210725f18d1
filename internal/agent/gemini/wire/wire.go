// Package wire encodes the messages between Gemini CLI or Qwen Code and a companion: two tools and the ide/*
// notifications. It is pure: no I/O, no clock.
package wire

import (
	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/jsontext"
)

// Notifications and tools (docs/spec/gemini.md, C; docs/spec/companion.md, F).
const (
	NotifyContext  = "ide/contextUpdate"
	NotifyAccepted = "ide/diffAccepted"
	NotifyRejected = "ide/diffRejected"
	// NotifyClosed is for CLIs older than diffRejected.
	NotifyClosed = "ide/diffClosed"

	ToolOpenDiff  = "openDiff"
	ToolCloseDiff = "closeDiff"

	ArgumentPath    = "filePath"
	ArgumentContent = "newContent"
)

// Opened returns the response to openDiff once the view is open (SPEC F-2).
func Opened(id []byte) []byte { return jsonrpc.Result(id, `{"content":[]}`) }

// Closed returns the response to closeDiff: one text block whose text is JSON (SPEC §0). The CLI takes "content" as
// the user's edit, so an unedited text has another name. The text is escaped twice in one pass.
func Closed(id []byte, content string, edited bool) []byte {
	name := "finalContent"
	if edited {
		name = "content"
	}
	dst := jsonrpc.AppendResult(make([]byte, 0, len(id)+jsontext.Room(content)+len(content)/8), id)
	dst = append(dst, `{"content":[{"type":"text","text":"{\"`...)
	dst = append(dst, name...)
	dst = append(dst, `\":\"`...)
	dst = jsontext.AppendNested(dst, content)
	return append(dst, `\"}"}]}}`...)
}

// Tools is the result of tools/list (SPEC F-1).
const Tools = `{"tools":[` +
	`{"name":"openDiff","title":"Open a diff","description":"Shows a proposed new content of a file as an editable diff. Answers when the view is open; the user's decision follows as ide/diffAccepted or ide/diffRejected.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"filePath":{"type":"string","description":"Absolute path of the file."},` +
	`"newContent":{"type":"string","description":"The whole proposed content."}},` +
	`"required":["filePath","newContent"]}},` +
	`{"name":"closeDiff","title":"Close a diff","description":"Takes an open diff away. Answers with its content as the user left it, as JSON: content when it was edited, finalContent when not.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"filePath":{"type":"string","description":"The path that openDiff was called with."},` +
	`"suppressNotification":{"type":"boolean","description":"Accepted for compatibility: no notification ever follows a closeDiff."}},` +
	`"required":["filePath"]}}]}`
