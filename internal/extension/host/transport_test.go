package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestLinesThatAreNoMessages: an invalid line is answered, and the lines after it are read.
func TestLinesThatAreNoMessages(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for name, c := range map[string]struct{ line, code string }{
		"not JSON":      {`{bad`, "-32700"},
		"no text":       {"\xff\xfe\x00", "-32700"},
		"deep":          {strings.Repeat("[", 200_000), "-32700"},
		"null":          {`null`, "-32600"},
		"empty object":  {`{}`, "-32600"},
		"empty batch":   {`[]`, "-32600"},
		"other version": {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, "-32600"},
		"id":            {`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, "-32600"},
		"batch":         {`[` + ping + `]`, "-32600"},
		"too long":      {`"` + strings.Repeat("a", maxMessage) + `"`, "-32600"},
		"blank":         {" \r", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			conn, err := (&transport{in: strings.NewReader(c.line + "\n" + ping), out: &out, ended: func() {}}).Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m, err := conn.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := m.(*jsonrpc.Request); !ok || r.Method != "ping" {
				t.Errorf("read %#v", m)
			}
			if c.code == "" && out.Len() != 0 || !strings.Contains(out.String(), c.code) || strings.Count(out.String(), "\n") > 1 {
				t.Errorf("answered %q, not one %s", out.String(), c.code)
			}
			if _, err = conn.Read(context.Background()); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

// TestBatches: a client with an old protocol version may send several messages at once.
func TestBatches(t *testing.T) {
	const first = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}` + "\n"
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	var out strings.Builder
	c, err := (&transport{in: strings.NewReader(first + "[" + ping + ",1]\n[" + ping + "] \r\n"), out: &out, ended: func() {}}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"initialize", "ping"} {
		m, err := c.Read(context.Background())
		if r, ok := m.(*jsonrpc.Request); err != nil || !ok || r.Method != method {
			t.Errorf("read %#v, %v", m, err)
		}
	}
	if strings.Count(out.String(), "-32600") != 1 {
		t.Errorf("answered %q", out.String())
	}
}

// FuzzMessages: whatever a client sends, it receives only valid messages, and no call keeps the CLI's own argument.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"wait_for_previous":true,"a":"b"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}` + "\n" + `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		"{}\n[]\nnull\n\"\n\x00\n", `{"jsonrpc":"2.0","id":{},"method":"x","params":[]}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		ended := make(chan struct{})
		c, err := (&transport{in: bytes.NewReader(data), out: &out, ended: func() { close(ended) }}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for {
			m, err := c.Read(t.Context())
			if err != nil {
				break
			}
			r, ok := m.(*jsonrpc.Request)
			if !ok || r.Method != "tools/call" {
				continue
			}
			var p, args map[string]json.RawMessage
			if json.Unmarshal(r.Params, &p) == nil && json.Unmarshal(p["arguments"], &args) == nil && args["wait_for_previous"] != nil {
				t.Fatalf("%s", r.Params)
			}
		}
		<-ended
		_ = c.Close()
		for line := range strings.Lines(out.String()) {
			var m struct{ JSONRPC string }
			if json.Unmarshal([]byte(line), &m) != nil || m.JSONRPC != "2.0" {
				t.Fatalf("%q", line)
			}
		}
	})
}
