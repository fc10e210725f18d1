package host

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestLinesThatAreNoMessages: what is no message is answered, and what comes behind it is read.
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

// TestBatches: a client of an old protocol may send several messages at once.
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
