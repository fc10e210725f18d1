package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/jsontext"
)

// F-6: the decoder reads the same as encoding/json.
func TestDecodeCall(t *testing.T) {
	call := func(args string) string {
		return `{"method":"tools/call","params":{"name":"openDiff","arguments":` + args + `},"jsonrpc":"2.0","id":7}`
	}
	text := func(s string) jsontext.Text { return jsontext.Text{Value: s, State: jsontext.Good} }
	for _, test := range []struct {
		name, body    string
		path, content jsontext.Text
	}{
		{"as the CLI sends it", call(`{"filePath":"/a","newContent":"x\n\"y\"\\\t\u00e9"}`), text("/a"), text("x\n\"y\"\\\té")},
		{"other order", `{"id":7,"params":{"arguments":{"newContent":"c","filePath":"p"},"name":"openDiff"},"jsonrpc":"2.0","method":"tools/call"}`, text("p"), text("c")},
		{"unknown members", call(`{"x":[{"filePath":"no"},1e5,null],"filePath":"p","y":{"newContent":{}},"newContent":""}`), text("p"), text("")},
		{"duplicates: the last counts", call(`{"filePath":"no","filePath":"p","newContent":1,"newContent":"c"}`), text("p"), text("c")},
		{"escaped member names", call(`{"\u0066ilePath":"p","newContent":"c"}`), text("p"), text("c")},
		{"pairs", call(`{"filePath":"\ud83d\ude00","newContent":"a\uD83D\uDE00b"}`), text("😀"), text("a😀b")},
		{"half a pair", call(`{"filePath":"p","newContent":"a\ud83db"}`), text("p"), jsontext.Text{Value: "a\uFFFDb", State: jsontext.LoneSurrogate}},
		{"wrong half first", call(`{"filePath":"\ude00\ud83d","newContent":""}`), jsontext.Text{Value: "\uFFFD\uFFFD", State: jsontext.LoneSurrogate}, text("")},
		{"other types", call(`{"filePath":null,"newContent":["c"]}`), jsontext.Text{State: jsontext.NotText}, jsontext.Text{State: jsontext.NotText}},
		{"no arguments", call(`null`), jsontext.Text{}, jsontext.Text{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Decode([]byte(test.body), "filePath", "newContent")
			if err != nil || string(m.ID) != "7" || m.Call.Name.Value != "openDiff" {
				t.Fatalf("%+v, %v", m, err)
			}
			if m.Call.Text("filePath") != test.path || m.Call.Text("newContent") != test.content {
				t.Errorf("got %q %q, want %q %q", m.Call.Text("filePath"), m.Call.Text("newContent"), test.path, test.content)
			}
		})
	}
}

// F-6: the JSON of a large argument is kept as it was sent, and is the same text. That of a small one is not kept.
func TestDecodeKeeps(t *testing.T) {
	const all = `\ufeff\r\n\u0000\/\u00e9\ud83d\ude00\"\\ ` + "\u2028é😀"
	long := strings.Repeat(all, keptFrom/len(all)+1)
	for _, content := range []string{long, "x", "", long + `\ud83d`} {
		body := `{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"/a\n","newContent":"` + content + `"}},"jsonrpc":"2.0","id":7}`
		sent := []byte(body)
		m, err := Decoder{Arguments: []string{"filePath", "newContent"}, KeepJSON: true}.Decode(sent)
		if err != nil {
			t.Fatal(err)
		}
		if text := m.Call.Text("filePath"); text.JSON != "" || text.Value != "/a\n" {
			t.Errorf("%+v", text)
		}
		var want string
		if err := json.Unmarshal([]byte(`"`+content+`"`), &want); err != nil {
			t.Fatal(err)
		}
		text, kept := m.Call.Text("newContent"), ""
		if len(content) >= keptFrom {
			kept = `"` + content + `"`
		}
		if text.Value != want || text.JSON != kept || (text.State == jsontext.LoneSurrogate) != strings.HasSuffix(content, `\ud83d`) {
			t.Errorf("%.40q: %d bytes, state %d, JSON %d bytes", content, len(text.Value), text.State, len(text.JSON))
		}
		for i := range sent { // the body may be used again, where no JSON is kept
			sent[i] = 'x'
		}
		if text.Value != want || m.Call.Text("filePath").Value != "/a\n" {
			t.Errorf("%.40q points into the body", content)
		}
	}
	for _, bad := range []string{`"` + long, `"` + long + "\n\"", `"` + long + "\xff\"", `"` + long + `\x"`} {
		body := `{"method":"tools/call","params":{"name":"openDiff","arguments":{"newContent":` + bad + `}},"jsonrpc":"2.0","id":7}`
		if _, err := (Decoder{Arguments: []string{"newContent"}, KeepJSON: true}).Decode([]byte(body)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%.40q: %v", bad[len(bad)-8:], err)
		}
	}
}

// T-1: Decode refuses text that is not JSON, and JSON that is not a message.
func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("[", jsontext.MaxDepth+1) + strings.Repeat("]", jsontext.MaxDepth+1)
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

// FuzzDecode: the decoder agrees with encoding/json about every possible JSON-RPC body (SPEC A-4, F-6).
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"/a","newContent":"x\n\ud83d\ude00"}},"jsonrpc":"2.0","id":7}`))
	f.Add([]byte(`{"params":{"arguments":{"filePath":1}},"jsonrpc":"2.0","id":"x","method":"tools/call"}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1e999,"method":"x"}`))
	f.Add([]byte(`{"a":"` + strings.Repeat("]", jsontext.MaxDepth) + `","b":` + strings.Repeat("[", jsontext.MaxDepth) + strings.Repeat("]", jsontext.MaxDepth) + `}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body) && utf8.Valid(body)
		var want map[string]any
		numbers := json.NewDecoder(bytes.NewReader(body))
		numbers.UseNumber() // numbers may exceed a float64
		isObject := valid && numbers.Decode(&want) == nil && want != nil
		m, err := Decode([]byte(string(body)), "filePath", "newContent") // a copy: Decode unescapes in place
		if !valid {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("accepted what is not JSON: %v", err)
			}
			return
		}
		if errors.Is(err, ErrSyntax) {
			if depth(body) <= jsontext.MaxDepth {
				t.Fatal("refused valid JSON")
			}
			return
		}
		kept, err2 := Decoder{Arguments: []string{"filePath", "newContent"}, KeepJSON: true}.Decode([]byte(string(body)))
		if !errors.Is(err2, err) || string(kept.ID) != string(m.ID) || kept.Call.Text("filePath") != m.Call.Text("filePath") || kept.Call.Text("newContent") != m.Call.Text("newContent") {
			t.Fatalf("%+v, %v; with the JSON kept %+v, %v", m, err, kept, err2)
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
		got  jsontext.Text
		want any
		in   map[string]any
		name string
	}{{c.Name, p["name"], p, "name"}, {c.Text("filePath"), args["filePath"], args, "filePath"}, {c.Text("newContent"), args["newContent"], args, "newContent"}} {
		want, isText := x.want.(string)
		_, present := x.in[x.name]
		switch {
		case !present && x.got.State == jsontext.Absent:
		case present && !isText && x.got.State == jsontext.NotText:
		case isText && (x.got.State == jsontext.Good || x.got.State == jsontext.LoneSurrogate) && x.got.Value == want:
		default:
			t.Fatalf("%s: got %+v, want %v", x.name, x.got, x.want)
		}
	}
}

// depth returns the nesting depth of valid JSON, outside strings.
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
