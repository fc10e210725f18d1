package wire

import (
	"strconv"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/jsontext"
)

// An IdeContext is the params of ide/contextUpdate (SPEC C-1).
type IdeContext struct {
	// Files are newest first. Files whose path is not Unicode text are left out.
	Files []File
	// Trusted is nil when the editor has no workspace trust; the field is then omitted (SPEC C-7).
	Trusted *bool
}

// A File is one open file of an IdeContext.
type File struct {
	Path string
	// Timestamp is the last focus, in Unix milliseconds.
	Timestamp int64
	// Active, Cursor and Selected are set for at most one file (SPEC C-4).
	Active bool
	// Cursor is nil when unknown.
	Cursor *Cursor
	// Selected is "" when nothing is selected.
	Selected string
}

// A Cursor is a position, line and UTF-16 character both 1-based (SPEC C-4).
type Cursor struct{ Line, Character int }

// ContextUpdate returns the notification. It cannot produce what the CLI refuses to parse (null in an optional field,
// a missing timestamp), because the CLI disconnects on that.
func ContextUpdate(c *IdeContext) []byte {
	dst := make([]byte, 0, 512)
	dst = append(dst, `{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{"workspaceState":{"openFiles":[`...)
	first := true
	for i := range c.Files {
		if f := &c.Files[i]; utf8.ValidString(f.Path) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendFile(dst, f)
		}
	}
	dst = append(dst, ']')
	if c.Trusted != nil {
		dst = append(dst, `,"isTrusted":`...)
		dst = strconv.AppendBool(dst, *c.Trusted)
	}
	return append(dst, `}}}`...)
}

func appendFile(dst []byte, f *File) []byte {
	dst = append(dst, `{"path":`...)
	dst = jsontext.AppendString(dst, f.Path)
	dst = append(dst, `,"timestamp":`...)
	dst = strconv.AppendInt(dst, f.Timestamp, 10)
	if f.Active {
		dst = append(dst, `,"isActive":true`...)
		if f.Cursor != nil {
			dst = append(dst, `,"cursor":{"line":`...)
			dst = strconv.AppendInt(dst, int64(f.Cursor.Line), 10)
			dst = append(dst, `,"character":`...)
			dst = strconv.AppendInt(dst, int64(f.Cursor.Character), 10)
			dst = append(dst, '}')
		}
		if f.Selected != "" {
			dst = append(dst, `,"selectedText":`...)
			dst = jsontext.AppendString(dst, f.Selected)
		}
	}
	return append(dst, '}')
}

// Accepted returns ide/diffAccepted with the path as the CLI sent it (SPEC F-3).
func Accepted(path, content string) []byte { return outcome(NotifyAccepted, path, &content) }

// Rejected returns ide/diffRejected.
func Rejected(path string) []byte { return outcome(NotifyRejected, path, nil) }

// ClosedNotice returns ide/diffClosed, for CLIs older than ide/diffRejected.
func ClosedNotice(path, content string) []byte { return outcome(NotifyClosed, path, &content) }

func outcome(method, path string, content *string) []byte {
	size := jsontext.Room(path)
	if content != nil {
		size += jsontext.Room(*content)
	}
	dst := make([]byte, 0, size)
	dst = append(dst, `{"jsonrpc":"2.0","method":"`...)
	dst = append(dst, method...)
	dst = append(dst, `","params":{"filePath":`...)
	dst = jsontext.AppendString(dst, path)
	if content != nil {
		dst = append(dst, `,"content":`...)
		dst = jsontext.AppendString(dst, *content)
	}
	return append(dst, `}}`...)
}
