package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// pair connects two peers by pipes; b is under test.
func pair(t *testing.T, o PeerOptions) (a *Peer, aq *Queue, ended chan error, hang func()) {
	t.Helper()
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	aq = NewQueue(NewChannel(r2, w1, nil))
	a = NewPeer(aq, PeerOptions{Handle: func(context.Context, string, json.RawMessage) (any, error) { return nil, nil }})
	b := NewPeer(NewQueue(NewChannel(r1, w2, nil)), o)
	ended = make(chan error, 1)
	go func() { ended <- b.Run(t.Context()) }()
	go func() { _ = a.Run(t.Context()) }()
	hang = func() { w1.Close() }
	t.Cleanup(func() { w1.Close(); w2.Close() })
	return a, aq, ended, hang
}

func TestPeer(t *testing.T) {
	after := make(chan bool, 1)
	var order []string
	a, q, ended, hang := pair(t, PeerOptions{
		Aside: func(method string) bool { return method == "slow" },
		Handle: func(ctx context.Context, method string, params json.RawMessage) (any, error) {
			switch method {
			case "echo":
				return Answer{Result: params, After: func() { after <- true }}, nil
			case "fail":
				return nil, Errorf(-32001, "busy %d", 7)
			case "odd":
				return nil, errors.New("odd")
			case "panic":
				panic("x")
			case "slow":
				<-ctx.Done()
				return nil, ctx.Err()
			case "note":
				order = append(order, string(params))
				return nil, nil
			case "notes":
				return order, nil
			}
			return nil, Errorf(CodeNoMethod, "no %s", method)
		},
	})
	ask := func(method string, params any) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out json.RawMessage
		err := a.Call(ctx, method, params, &out)
		var e *Error
		switch {
		case errors.As(err, &e):
			return e.Message
		case err != nil:
			t.Fatal(err)
		}
		return string(out)
	}
	if got := ask("echo", map[string]int{"x": 1}); got != `{"x":1}` || !<-after {
		t.Error(got)
	}
	for _, msg := range malformed { // no malformed message ends the conversation
		if err := q.Send([]byte(msg)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		a.Notify("note", []int{i})
	}
	for method, want := range map[string]string{"fail": "busy 7", "odd": "odd", "panic": "pollux failed at panic; its log says more", "x": "no x", "notes": `["[0]","[1]","[2]"]`} {
		if got := ask(method, nil); got != want {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := a.Call(ctx, "slow", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := ask("notes", nil); got == "" { // slow runs on its own goroutine
		t.Error(got)
	}
	hang()
	if err := <-ended; err != nil {
		t.Errorf("a clean end is %v", err)
	}
}

// A large answer with a broken string fails the call that decodes it, at once; raw, it comes as it is.
func TestLargeBrokenAnswer(t *testing.T) {
	toPeer, answers := io.Pipe()
	asked, fromPeer := io.Pipe()
	a := NewPeer(NewQueue(NewChannel(toPeer, fromPeer, nil)), PeerOptions{})
	go func() { _ = a.Run(t.Context()) }()
	t.Cleanup(func() { answers.Close(); asked.Close() })
	other := NewChannel(asked, answers, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	call := func(result string, out any) error {
		done := make(chan error, 1)
		go func() { done <- a.Call(ctx, "x", nil, out) }()
		var m incoming
		if request, err := other.Next(); err != nil || json.Unmarshal(request, &m) != nil {
			t.Fatalf("%s, %v", request, err)
		}
		if err := other.Send([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)); err != nil {
			t.Fatal(err)
		}
		return <-done
	}
	for _, broken := range []string{`\x`, `\u12`, "\x01"} {
		result := `"` + strings.Repeat("x", large) + broken + `"`
		if err := call(result, new(string)); err == nil || ctx.Err() != nil {
			t.Errorf("%q: %v", broken, err)
		}
		var raw json.RawMessage
		if err := call(result, &raw); err != nil || string(raw) != result {
			t.Errorf("%q: %.20s, %v", broken, raw, err)
		}
	}
}

// A call fails when the other side has gone.
func TestPeerGone(t *testing.T) {
	r, w := io.Pipe()
	_, out := io.Pipe()
	p := NewPeer(NewQueue(NewChannel(r, out, nil)), PeerOptions{})
	failed := make(chan error, 1)
	go func() { failed <- p.Call(t.Context(), "x", nil, nil) }()
	time.AfterFunc(10*time.Millisecond, func() { w.CloseWithError(io.ErrUnexpectedEOF) })
	if err := p.Run(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, errGone) {
		t.Error(err)
	}
}

// A side that does not read delays nobody, and memory stays bounded (SPEC A-4).
func TestQueueIsBounded(t *testing.T) {
	r, w := io.Pipe()
	q := NewQueue(NewChannel(strings.NewReader(""), w, nil))
	big := []byte(`"` + strings.Repeat("x", 10<<20) + `"`)
	watch, sent := pace.Start(t), 0
	var err error
	for ; err == nil && sent < 100; sent++ {
		err = q.Send(big)
	}
	if !errors.Is(err, errSlow) || sent > 9 || watch.Took() > pace.Slack*time.Second {
		t.Errorf("%d messages of 10 MiB, %v, %v", sent, err, watch.Took())
	}
	begun := watch.Took()
	q.Close(50 * time.Millisecond)
	if took := watch.Took() - begun; took > pace.Slack*time.Second {
		t.Errorf("the end took %v", took)
	}
	if err := q.Send(big); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	r.Close()
}

// Queued messages are written before the end, in order.
func TestQueueFlushes(t *testing.T) {
	out := &sink{}
	q := NewQueue(NewChannel(strings.NewReader(""), out, nil))
	for _, m := range []string{"1", "2", "3"} {
		if err := q.Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	q.Close(time.Second)
	if out.String() != "1\n2\n3\n" {
		t.Errorf("%q", out)
	}
}

// A large message is read like a small one, whatever it contains, and a Large value arrives.
func TestLargeMessages(t *testing.T) {
	fill := strings.Repeat("x", large)
	a, q, _, _ := pair(t, PeerOptions{Handle: func(_ context.Context, method string, params json.RawMessage) (any, error) {
		if method == "fail" {
			return nil, Errorf(-32001, "%s", fill)
		}
		return params, nil
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, broken := range []string{
		`{"jsonrpc":"2.0","id":"z","method":"x","params":"` + fill, `{"jsonrpc":"2.0","id":"z","method":"x","params":"` + fill + "\xff" + `"}`,
		`{"jsonrpc":"2.0","id":{},"method":"x","params":"` + fill + `"}`, `{"jsonrpc":"2.0","result":"` + fill + `","result":1}`,
		`{"jsonrpc":"2.0","id":99,"result":"` + fill + `"}`, `{"jsonrpc":1,"params":"` + fill + `"}`, `["` + fill + `"]`,
	} {
		if err := q.Send([]byte(broken)); err != nil {
			t.Fatal(err)
		}
	}
	for _, params := range []any{
		map[string]string{"a": fill}, []string{fill, fill}, json.RawMessage(`{"text" : "` + fill + `", "b":[1]}`),
		Large{[]byte(`{"a":"` + fill + `"}`)}, Large{[]byte(`{"a":"`), []byte(fill), []byte(strings.Repeat("y", 2*oneWrite)), []byte(`"`), []byte(`}`)},
	} {
		want, ok := params.(Large)
		expect, _ := json.Marshal(params)
		if ok {
			expect = slices.Concat(want...)
		}
		var raw json.RawMessage
		if err := a.Call(ctx, "echo", params, &raw); err != nil || string(raw) != string(expect) {
			t.Errorf("%.40s came back as %.40s, %v", expect, raw, err)
		}
		var decoded any
		if err := a.Call(ctx, "echo", params, &decoded); err != nil || decoded == nil {
			t.Error(err)
		}
	}
	var e *Error
	if err := a.Call(ctx, "fail", map[string]string{"a": fill}, nil); !errors.As(err, &e) || e.Message != fill {
		t.Errorf("%.40v", err)
	}
}
