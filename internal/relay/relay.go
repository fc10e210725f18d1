// Package relay is a companion that a CLI starts as a command (SPEC K-4): it
// speaks MCP over standard input and output, finds the editor that serves the
// CLI's folder, and passes everything on; when the editor goes, it waits for
// the next one and shows it the diffs that are still open. The CLI stays connected all
// the time, and hears of an outcome only when the user has really decided.
package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/client"
)

const (
	// lookEvery is how often the relay looks for an editor while it has none.
	lookEvery = 500 * time.Millisecond
	// showWithin is how long a proposal waits for an editor. After that it is refused, and the CLI asks in the terminal.
	showWithin = 2 * time.Second
	// dialWithin bounds the opening of a session.
	dialWithin = 10 * time.Second
	// callWithin is how long the CLI waits for an answer.
	callWithin = 10 * time.Minute
	// maxLine bounds a message from the CLI, in bytes.
	maxLine = 80 << 20
)

// Options of Run; In and Out are needed.
type Options struct {
	In  io.Reader
	Out io.Writer
	// World is where to look for editors; nil means this process's environment.
	World *client.World
	// Ways returns the ways to editors for an agent that searches differently from Gemini CLI, in its order; nil searches as Gemini CLI does.
	Ways func() []client.Way
	// Version is pollux's own.
	Version string
	// Log gets what happens, without contents or tokens; nil discards.
	Log *slog.Logger
}

// A relay is one run. Goroutines: one reads the CLI's messages (Run itself),
// one holds the link to the editor, one for each request in work; Run awaits all.
type relay struct {
	o     Options
	world *client.World
	work  sync.WaitGroup
	broke chan *client.Link // a link that has failed
	ready chan struct{}     // closed when the CLI listens; it ignores earlier notifications
	once  sync.Once         // for ready

	out sync.Mutex // guards writes to o.Out

	mu         sync.Mutex // guards the below
	link       *client.Link
	changed    chan struct{} // closed and replaced when link changes
	open       []diff        // in the order of opening
	hasContext bool          // the CLI has been told of a context
}

// A diff is one that the CLI waits for.
type diff struct{ path, content string }

// Run relays until the CLI closes In, or ctx ends.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &relay{o: o, world: client.Complete(o.World), changed: make(chan struct{}), broke: make(chan *client.Link, 8), ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	r.work.Go(func() { r.hold(ctx) })
	err := r.listen(ctx)
	cancel()
	r.work.Wait()
	return err
}

// listen reads the CLI's messages, one on each line.
func (r *relay) listen(ctx context.Context) error {
	in := bufio.NewReaderSize(r.o.In, 64<<10)
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			r.handle(ctx, line)
		}
	}
}

var errLine = errors.New("the CLI has sent a message of more than 80 MiB")

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// A message is one of the CLI's.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (r *relay) handle(ctx context.Context, line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		r.answerError(json.RawMessage("null"), jsonrpc.CodeParse, "the message is not valid JSON")
		return
	}
	if m.Method == jsonrpc.MethodInitialized {
		r.once.Do(func() { close(r.ready) })
	}
	if m.Method == "" || m.ID == nil {
		return // an answer (the relay asks nothing), or a notification
	}
	switch m.Method {
	case jsonrpc.MethodInitialize:
		r.answer(m.ID, r.initialize(m.Params))
	case jsonrpc.MethodPing:
		r.answer(m.ID, struct{}{})
	case jsonrpc.MethodToolsList:
		r.answer(m.ID, json.RawMessage(toolsList))
	case jsonrpc.MethodToolsCall:
		// On goroutines, so that closeDiff does not wait behind openDiff.
		r.work.Go(func() { r.answer(m.ID, r.call(ctx, m.Params)) })
	default:
		r.answerError(m.ID, jsonrpc.CodeMethodNotFound, "no method "+m.Method)
	}
}

// toolsList is the answer to tools/list, with and without an editor.
const toolsList = `{"tools":[` +
	`{"name":"openDiff","description":"Shows a proposed change in the editor. The user's decision follows as a notification.","inputSchema":{"type":"object","properties":{"filePath":{"type":"string"},"newContent":{"type":"string"}},"required":["filePath","newContent"]}},` +
	`{"name":"closeDiff","description":"Closes a proposed change and returns its text.","inputSchema":{"type":"object","properties":{"filePath":{"type":"string"},"suppressNotification":{"type":"boolean"}},"required":["filePath"]}}]}`

func (r *relay) initialize(params json.RawMessage) any {
	var asked struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(params, &asked)
	version := jsonrpc.Versions()[0]
	for _, v := range jsonrpc.Versions() {
		if v == asked.ProtocolVersion {
			version = v
		}
	}
	type info struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	return struct {
		ProtocolVersion string                    `json:"protocolVersion"`
		Capabilities    map[string]map[string]any `json:"capabilities"`
		ServerInfo      info                      `json:"serverInfo"`
	}{version, map[string]map[string]any{"tools": {}}, info{"pollux-relay", "Pollux", r.o.Version}}
}

func (r *relay) answer(id json.RawMessage, result any) {
	r.write(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}

func (r *relay) answerError(id json.RawMessage, code int, text string) {
	type fault struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	r.write(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   fault           `json:"error"`
	}{"2.0", id, fault{code, text}})
}

func (r *relay) notify(method string, params json.RawMessage) {
	r.write(struct {
		JSONRPC string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}{"2.0", method, params})
}

func (r *relay) write(v any) {
	data, err := encode(v)
	if err != nil {
		r.o.Log.Error("a message could not be written", "err", err)
		return
	}
	r.out.Lock()
	defer r.out.Unlock()
	_, _ = r.o.Out.Write(data) // when the CLI is gone, In closes too
}

// encode writes one line. Texts stay as they are: < and > are not escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
