package rpc

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"
)

var malformed = []string{
	`{}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","method":"x"}`, `{"method":"x"}`, `{"jsonrpc":2,"method":"x"}`,
	`{"jsonrpc":"2.0","method":""}`, `{"jsonrpc":"2.0","method":5}`, `{"jsonrpc":"2.0","method":"x","params":5}`, `{"jsonrpc":"2.0","method":"x","params":null}`,
	`{"jsonrpc":"2.0","method":"x","extra":1}`, `{"jsonrpc":"2.0","id":null,"result":1}`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"jsonrpc":"2.0","id":true,"method":"x"}`,
	`[]`, `[5]`, `[{}]`, `{"jsonrpc":"2.0","method":"x"`, `{"jsonrpc":"2.0","method":"x"} {}`,
}

func TestCheck(t *testing.T) {
	for _, in := range malformed {
		if _, err := NewChannel(strings.NewReader(in+"\n"), &sink{}, nil).Recv(); !errors.Is(err, ErrFraming) {
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{
		`{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":null,"method":"x","params":[1]}`, `{"jsonrpc":"2.0","id":1,"method":"x","params":{}}`,
		`{"jsonrpc":"2.0","id":"a","result":null}`, `{"jsonrpc":"2.0","id":-1,"error":{}}`, `[{"jsonrpc":"2.0","method":"x"}]`,
		`{"jsonrpc":"2.0","id":1,"method":5,"extra":0}`, // wrong, but it has an id to answer
	} {
		if got, err := NewChannel(strings.NewReader(in+"\n"), &sink{}, nil).Recv(); err != nil || string(got) != in {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// Malformed messages at the end of a connection do not crash the process.
func TestMalformedAtTheEnd(t *testing.T) {
	for range 20 {
		for _, in := range malformed {
			a, b := net.Pipe()
			srv := jrpc2.NewServer(handler.Map{}, nil).Start(NewChannel(a, a, nil))
			go func() {
				b.SetDeadline(time.Now().Add(time.Second))
				b.Write([]byte(in + "\n" + in + "\n"))
				b.Close()
			}()
			srv.Wait()
		}
	}
}
