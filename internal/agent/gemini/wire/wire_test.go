package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// F-6: what the decoder reads is what encoding/json reads.
func TestDecodeCall(t *testing.T) {
	call := func(args string) string {
		return `{"method":"tools/call","params":{"name":"openDiff","arguments":` + args + `},"jsonrpc":"2.0","id":7}`
	}
	text := func(s string) Text { return Text{Value: s, State: Good} }
	for _, test := range []struct {
		name, body    string
		path, content Text
	}{
		{"as the CLI sends it", call(`{"filePath":"/a","newContent":"x\n\"y\"\\\t\u00e9"}`), text("/a"), text("x\n\"y\"\\\té")},
		{"other order", `{"id":7,"params":{"arguments":{"newContent":"c","filePath":"p"},"name":"openDiff"},"jsonrpc":"2.0","method":"tools/call"}`, text("p"), text("c")},
		{"unknown members", call(`{"x":[{"filePath":"no"},1e5,null],"filePath":"p","y":{"newContent":{}},"newContent":""}`), text("p"), text("")},
		{"duplicates: the last counts", call(`{"filePath":"no","filePath":"p","newContent":1,"newContent":"c"}`), text("p"), text("c")},
		{"escaped member names", call(`{"\u0066ilePath":"p","newContent":"c"}`), text("p"), text("c")},
		{"pairs", call(`{"filePath":"\ud83d\ude00","newContent":"a\uD83D\uDE00b"}`), text("😀"), text("a😀b")},
		{"half a pair", call(`{"filePath":"p","newContent":"a\ud83db"}`), text("p"), Text{"a\uFFFDb", LoneSurrogate}},
		{"wrong half first", call(`{"filePath":"\ude00\ud83d","newContent":""}`), Text{"\uFFFD\uFFFD", LoneSurrogate}, text("")},
		{"other types", call(`{"filePath":null,"newContent":["c"]}`), Text{State: NotText}, Text{State: NotText}},
		{"no arguments", call(`null`), Text{}, Text{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Decode([]byte(test.body))
			if err != nil || string(m.ID) != "7" || m.Call.Name.Value != ToolOpenDiff {
				t.Fatalf("%+v, %v", m, err)
			}
			if m.Call.FilePath != test.path || m.Call.NewContent != test.content {
				t.Errorf("got %q %q, want %q %q", m.Call.FilePath, m.Call.NewContent, test.path, test.content)
			}
		})
	}
}

// T-1: what is not JSON, and what is JSON but no message.
func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for body, want := range map[string]error{
		``:                                    ErrSyntax,
		`{`:                                   ErrSyntax,
		`{"jsonrpc":"2.0","method":"ping"} x`: ErrSyntax,
		"{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}":               ErrSyntax,
		"{\"jsonrpc\":\"2.0\",\"method\":\"a\xff\"}":              ErrSyntax,
		`{"jsonrpc":"2.0","method":"ping","params":01}`:           ErrSyntax,
		`{"jsonrpc":"2.0","method":"ping","params":"\x"}`:         ErrSyntax,
		`{"jsonrpc":"2.0","method":"ping","params":` + deep + `}`: ErrSyntax,
		`[]`: ErrInvalid,
		`5`:  ErrInvalid,
		`{}`: ErrInvalid,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                    ErrInvalid,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                 ErrInvalid,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                   ErrInvalid,
		`{"jsonrpc":"2.0","id":1,"method":2}`:                                         ErrInvalid,
		`{"jsonrpc":"2.0","id":1}`:                                                    ErrInvalid,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", maxID) + `","method":"ping"}`: ErrInvalid,
	} {
		if _, err := Decode([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", body, err, want)
		}
	}
}

// T-1: an error can be answered when the id is readable.
func TestInvalidKeepsID(t *testing.T) {
	m, err := Decode([]byte(`{"id":"a\"b","method":3,"jsonrpc":"2.0"}`))
	if !errors.Is(err, ErrInvalid) || string(m.ID) != `"a\"b"` {
		t.Errorf("%q, %v", m.ID, err)
	}
}

func TestBatch(t *testing.T) {
	body := []byte(` [{"a":[1,2]} , 3,"x"]`)
	parts, err := SplitBatch(body, 3)
	if !IsBatch(body) || err != nil || len(parts) != 3 || string(parts[0]) != `{"a":[1,2]}` {
		t.Fatalf("%q, %v", parts, err)
	}
	if _, err := SplitBatch(body, 2); !errors.Is(err, ErrInvalid) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := SplitBatch([]byte(`[]`), 2); !errors.Is(err, ErrInvalid) {
		t.Errorf("empty: %v", err)
	}
	if _, err := SplitBatch([]byte(`[1`), 2); !errors.Is(err, ErrSyntax) {
		t.Errorf("cut off: %v", err)
	}
}

// awkward holds what encoders get wrong.
const awkward = "a\"b\\c/\n\r\t\b\f\x00\x1f\x7f é 世界 😀 \u2028\u2029 \u2027 \u20ac </script> \uFFFD end"

// F-6: every text comes through every answer unchanged, once or twice escaped.
func TestEncodersKeepText(t *testing.T) {
	for _, s := range []string{"", "plain", awkward, strings.Repeat(awkward, 50)} {
		var notified struct {
			Method string
			Params struct{ FilePath, Content string }
		}
		mustUnmarshal(t, Accepted(s, s), &notified)
		if notified.Params.FilePath != s || notified.Params.Content != s || notified.Method != NotifyAccepted {
			t.Errorf("Accepted: %+v", notified)
		}
		for _, edited := range []bool{false, true} {
			var closed struct {
				Result struct{ Content []struct{ Type, Text string } }
			}
			mustUnmarshal(t, Closed([]byte("1"), s, edited), &closed)
			var inner map[string]string
			mustUnmarshal(t, []byte(closed.Result.Content[0].Text), &inner)
			want := map[bool]string{false: "finalContent", true: "content"}[edited]
			if got, ok := inner[want]; !ok || got != s || len(inner) != 1 {
				t.Errorf("Closed(edited %v): %q", edited, inner)
			}
		}
	}
}

func mustUnmarshal(t *testing.T, b []byte, v any) {
	t.Helper()
	if strings.ContainsAny(string(b), "\n\r\u2028\u2029") {
		t.Errorf("a line break in %q", b)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

// FuzzDecode: the decoder agrees with encoding/json about everything that a
// JSON-RPC body can be (SPEC A-4, F-6).
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"/a","newContent":"x\n\ud83d\ude00"}},"jsonrpc":"2.0","id":7}`))
	f.Add([]byte(`{"params":{"arguments":{"filePath":1}},"jsonrpc":"2.0","id":"x","method":"tools/call"}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1e999,"method":"x"}`))
	f.Add([]byte(`{"a":"` + strings.Repeat("]", MaxDepth) + `","b":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body) && utf8.Valid(body)
		var want map[string]any
		numbers := json.NewDecoder(bytes.NewReader(body))
		numbers.UseNumber() // which may be larger than a float64
		isObject := valid && numbers.Decode(&want) == nil && want != nil
		m, err := Decode([]byte(string(body))) // a copy: Decode unescapes in place
		if !valid {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("accepted what is not JSON: %v", err)
			}
			return
		}
		if errors.Is(err, ErrSyntax) {
			if depth(body) <= MaxDepth {
				t.Fatal("refused valid JSON")
			}
			return
		}
		if err != nil {
			return
		}
		if !isObject || want["jsonrpc"] != "2.0" {
			t.Fatal("accepted what is not a message")
		}
		method, _ := want["method"].(string)
		if m.Method != method {
			t.Fatalf("method %q, want %q", m.Method, method)
		}
		if m.Method == MethodToolsCall {
			compareCall(t, m.Call, want["params"])
		}
	})
}

func compareCall(t *testing.T, c Call, params any) {
	p, _ := params.(map[string]any)
	args, _ := p["arguments"].(map[string]any)
	for _, x := range []struct {
		got  Text
		want any
		in   map[string]any
		name string
	}{{c.Name, p["name"], p, "name"}, {c.FilePath, args["filePath"], args, "filePath"}, {c.NewContent, args["newContent"], args, "newContent"}} {
		want, isText := x.want.(string)
		_, present := x.in[x.name]
		switch {
		case !present && x.got.State == Absent:
		case present && !isText && x.got.State == NotText:
		case isText && (x.got.State == Good || x.got.State == LoneSurrogate) && x.got.Value == want:
		default:
			t.Fatalf("%s: got %+v, want %v", x.name, x.got, x.want)
		}
	}
}

// depth counts nesting outside strings, of valid JSON.
func depth(body []byte) int {
	deepest, now := 0, 0
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		d.UseNumber()
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// FuzzContext: whatever a context holds, the CLI can parse it (SPEC C-1).
func FuzzContext(f *testing.F) {
	f.Add("/a", int64(5), true, 1, 2, "sel", true)
	f.Add("/\xff", int64(-1), false, 0, 0, awkward, false)
	f.Fuzz(func(t *testing.T, path string, stamp int64, active bool, line, char int, selected string, trusted bool) {
		c := &IdeContext{Files: []File{{Path: path, Timestamp: stamp, Active: active, Cursor: &Cursor{line, char}, Selected: selected}, {Path: "/b"}}}
		if trusted {
			c.Trusted = &trusted
		}
		b := ContextUpdate(c)
		var m struct {
			Params struct {
				WorkspaceState struct {
					OpenFiles []map[string]any
					IsTrusted *bool
				}
			}
		}
		if err := json.Unmarshal(b, &m); err != nil || strings.ContainsAny(string(b), "\n\r") {
			t.Fatalf("%v: %s", err, b)
		}
		state := m.Params.WorkspaceState
		if (state.IsTrusted != nil) != trusted {
			t.Errorf("isTrusted %v", state.IsTrusted)
		}
		if utf8.ValidString(path) != (len(state.OpenFiles) == 2) {
			t.Fatalf("files: %v", state.OpenFiles)
		}
		for _, file := range state.OpenFiles {
			_, isText := file["path"].(string)
			_, isNumber := file["timestamp"].(float64)
			for name, value := range file {
				if value == nil {
					t.Errorf("%s is null", name)
				}
			}
			if !isText || !isNumber || file["isActive"] != true && (file["cursor"] != nil || file["selectedText"] != nil) {
				t.Errorf("file %v", file)
			}
		}
	})
}
