package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
)

var _ channel.Channel = (*Channel)(nil)

type sink struct {
	bytes.Buffer
	closed bool
	writes int
}

func (s *sink) Write(b []byte) (int, error) { s.writes++; return s.Buffer.Write(b) }

func (s *sink) Close() error { s.closed = true; return nil }

func TestFraming(t *testing.T) {
	const frame = "Content-Length: 2\r\n\r\n{}"
	for name, tt := range map[string]struct {
		in   string
		want []string
		end  error // after the messages
	}{
		"lines":              {"{\"a\":1}\n[2]\r\n\n {}", []string{`{"a":1}`, `[2]`, `{}`}, io.EOF},
		"headers":            {frame + frame, []string{"{}", "{}"}, io.EOF},
		"mixed":              {frame + "\n{}\n" + frame, []string{"{}", "{}", "{}"}, io.EOF},
		"type before length": {"Content-Type: x\r\ncontent-length:2\r\n\r\n{}", []string{"{}"}, io.EOF},
		"bare newlines":      {"Content-Length: 2\n\n{}", []string{"{}"}, io.EOF},
		"same length twice":  {"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", []string{"{}"}, io.EOF},
		"two lengths":        {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", nil, ErrFraming},
		"no length":          {"Content-Type: x\r\n\r\n{}", nil, ErrFraming},
		"negative":           {"Content-Length: -2\r\n\r\n{}", nil, ErrFraming},
		"overflow":           {"Content-Length: 99999999999999999999\r\n\r\n{}", nil, ErrFraming},
		"announced too big":  {"Content-Length: 1000\r\n\r\n{}", nil, ErrFraming},
		"line too big":       {"{" + strings.Repeat(" ", 1000) + "}\n", nil, ErrFraming},
		"header too big":     {"Content-Type: " + strings.Repeat("x", 9000) + "\r\n\r\n", nil, ErrFraming},
		"many headers":       {strings.Repeat("Content-Type: x\r\n", 1000), nil, ErrFraming},
		"http":               {"GET / HTTP/1.1\r\n\r\n", nil, ErrFraming},
		"blanks for ever":    {strings.Repeat(" ", 5000) + "{}", nil, ErrFraming},
		"cut body":           {"Content-Length: 20\r\n\r\n{}", nil, io.ErrUnexpectedEOF},
		"cut header":         {"Content-Len", nil, io.ErrUnexpectedEOF},
		"nothing":            {"", nil, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewChannel(strings.NewReader(tt.in), &sink{}, &Options{MaxBody: 100})
			for i, want := range tt.want {
				if got, err := c.Next(); err != nil || string(got) != want {
					t.Fatalf("message %d: %q, %v; want %q", i, got, err, want)
				}
			}
			if got, err := c.Next(); !errors.Is(err, tt.end) {
				t.Errorf("at the end: %q, %v; want %v", got, err, tt.end)
			}
		})
	}
}

// Answers use the framing received last.
func TestSendFollowsRecv(t *testing.T) {
	out := &sink{}
	c := NewChannel(strings.NewReader("Content-Length: 2\r\n\r\n{}\n[]\n"), out, nil)
	for _, step := range []struct{ want string }{{"{\"a\":  1}\n"}, {"Content-Length: 9\r\n\r\n{\"a\":\n 1}"}, {"{\"a\":  1}\n"}} {
		out.Reset()
		if err := c.Send([]byte("{\"a\":\n 1}")); err != nil {
			t.Fatal(err)
		}
		if out.String() != step.want {
			t.Errorf("sent %q, want %q", out.String(), step.want)
		}
		c.Next()
	}
	if c.Close(); !out.closed {
		t.Error("Close did not close the writer")
	}
}

// A message in pieces arrives as one, in either framing, and few writes carry it.
func TestPieces(t *testing.T) {
	long := strings.Repeat("x", oneWrite+1)
	for _, pieces := range [][]string{{`{"a":1}`}, {`{"a":`, `1`, `}`}, {`{"a":"`, long, `"}`}, {`["` + long + `",`, ` "` + long + `"`, `]`}} {
		want, all := strings.Join(pieces, ""), [][]byte{}
		for _, p := range pieces {
			all = append(all, []byte(p))
		}
		for _, first := range []Framing{Lines, Headers} {
			out := &sink{}
			if err := NewChannel(strings.NewReader(""), out, &Options{First: first}).sendPieces(all...); err != nil {
				t.Fatal(err)
			}
			if out.writes > len(pieces)+1 || len(want) < oneWrite && out.writes > 1 {
				t.Errorf("%d writes for %d pieces of %d bytes", out.writes, len(pieces), len(want))
			}
			if got, err := NewChannel(strings.NewReader(out.String()), nil, nil).Next(); err != nil || string(got) != want {
				t.Errorf("%.40s in framing %d came as %.40s, %v", want, first, got, err)
			}
		}
	}
}

// An announced length that never arrives costs no memory (SPEC A-4).
func TestAnnouncedLengthCostsNothing(t *testing.T) {
	const in = "Content-Length: 67108864\r\n\r\n{"
	bytesPer := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			NewChannel(strings.NewReader(in), &sink{}, nil).Recv()
		}
	}).AllocedBytesPerOp()
	if bytesPer > 256<<10 {
		t.Errorf("%d bytes for a message of one", bytesPer)
	}
}

func TestWithJRPC2(t *testing.T) {
	for _, first := range []Framing{Lines, Headers} {
		a, b := net.Pipe()
		srv := jrpc2.NewServer(handler.Map{"echo": func(_ context.Context, req *jrpc2.Request) (any, error) {
			var v any
			err := req.UnmarshalParams(&v)
			return v, err
		}}, nil).Start(NewChannel(a, a, nil))
		cli := jrpc2.NewClient(NewChannel(b, b, &Options{First: first}), nil)
		want := strings.Repeat("ä\n", 100_000)
		var got []string
		if err := cli.CallResult(t.Context(), "echo", []string{want}, &got); err != nil || got[0] != want {
			t.Errorf("framing %d: %v", first, err)
		}
		cli.Close()
		srv.Stop()
		srv.Wait()
	}
}

// For any input, Recv ends and stays within its bound, and another Recv reads what Send writes.
func FuzzRecv(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}{}\n"))
	f.Add([]byte("{\n\n[]\r\nContent-Type: x\nContent-Length: 0\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := NewChannel(bytes.NewReader(in), &sink{}, &Options{MaxBody: 50})
		for {
			msg, err := c.Next()
			if err != nil {
				return
			}
			_ = check(msg)
			if len(msg) > 50 {
				t.Fatalf("%d bytes", len(msg))
			}
			out := &sink{}
			d := NewChannel(strings.NewReader(""), out, &Options{First: Headers})
			if err := d.Send(msg); err != nil {
				t.Fatal(err)
			}
			back, err := NewChannel(out, &sink{}, nil).Next()
			if err != nil || !bytes.Equal(back, msg) {
				t.Fatalf("%q came back as %q, %v", msg, back, err)
			}
		}
	})
}
