package contract

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// A message arrives whole, however long it is and however many frames it has; a ping is answered; a close is the end.
func TestWebSocket(t *testing.T) {
	frames := func(parts ...string) string { return strings.Join(parts, "") }
	for name, tt := range map[string]struct {
		in   string
		want []string
		said string
	}{
		"one":               {frames("\x81\x02{}"), []string{"{}"}, ""},
		"in pieces":         {frames("\x01\x01{", "\x80\x01}"), []string{"{}"}, ""},
		"a ping between":    {frames("\x01\x01{", "\x89\x01x", "\x80\x01}"), []string{"{}"}, "\x8a\x81\x00\x00\x00\x00x"},
		"126 bytes":         {frames("\x81\x7e\x00\x7e", strings.Repeat("a", 126)), []string{strings.Repeat("a", 126)}, ""},
		"65536 bytes":       {frames("\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", strings.Repeat("a", 1<<16)), []string{strings.Repeat("a", 1<<16)}, ""},
		"a close, and more": {frames("\x81\x02{}", "\x88\x00", "\x81\x02{}"), []string{"{}"}, ""},
		"a pong":            {frames("\x8a\x00", "\x81\x00"), []string{""}, ""},
		"far too long":      {"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", nil, ""},
		"half a head":       {"\x81", nil, ""},
		"half a message":    {"\x81\x05ab", nil, ""},
	} {
		var said bytes.Buffer
		w := webSocket{strings.NewReader(tt.in), &said}
		var got []string
		for {
			m, err := w.read()
			if err != nil {
				break
			}
			got = append(got, string(m))
		}
		if strings.Join(got, "|") != strings.Join(tt.want, "|") || len(got) != len(tt.want) || said.String() != tt.said {
			t.Errorf("%s: %d messages, said %q", name, len(got), said.String())
		}
	}
}

// Answers come by their numbers, before notifications, and the end is last.
func TestRank(t *testing.T) {
	order := []string{`{"id":1}`, `{"id":2.5}`, `{"method":"x"}`, "(end)"}
	for i := range order[1:] {
		if rank(order[i]) >= rank(order[i+1]) {
			t.Errorf("%s does not come before %s", order[i], order[i+1])
		}
	}
	if (&Archive{Settings: map[string]string{"agent": "claude"}}).Agent() != "claude" || !(Step{Kind: "messages"}).Expects() || (Step{Kind: "send"}).Expects() {
		t.Error("agent or expectation")
	}
}

// FuzzWire: whatever a companion sends, a message ends or fails.
func FuzzWire(f *testing.F) {
	f.Add([]byte("\x81\x02{}\x88\x00"))
	f.Add([]byte("\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, w := range []wire{webSocket{bytes.NewReader(data), io.Discard}, framed{bytes.NewReader(data), io.Discard}} {
			for {
				m, err := w.read()
				if err != nil {
					break
				}
				if len(m) > len(data) {
					t.Fatal("a message longer than all that came")
				}
			}
		}
		var written bytes.Buffer
		f := framed{&written, &written}
		text, _ := json.Marshal(string(data))
		if err := f.write(text); err != nil {
			t.Fatal(err)
		}
		if back, err := f.read(); err != nil || !bytes.Equal(back, text) {
			t.Fatal("not what was written")
		}
	})
}
