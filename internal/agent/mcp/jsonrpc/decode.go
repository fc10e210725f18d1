package jsonrpc

import (
	"bytes"
	"slices"

	"github.com/pollux-companion/pollux/internal/jsontext"
)

// Decode reads one message in one pass. It takes ownership of body: the message's strings point into it, so it must
// not be written again. Member order, unknown members and white space are free; of duplicate members the last one
// counts. An ErrInvalid message still carries its ID if that was readable. Of a tool's arguments, Decode reads only
// those named in arguments.
func Decode(body []byte, arguments ...string) (Message, error) {
	return Decoder{Arguments: arguments}.Decode(body)
}

// A Decoder says what to read.
type Decoder struct {
	// Arguments are the names of the tool's arguments to read.
	Arguments []string
	// KeepJSON keeps the JSON of large arguments (Text.JSON), for a caller that passes them on. The body then lives as long as that
	// JSON, and no longer.
	KeepJSON bool
}

// Decode is the function Decode with these settings.
func (o Decoder) Decode(body []byte) (Message, error) {
	s := jsontext.NewScanner(body)
	if s.Peek() != '{' {
		if !s.Skip() || !s.Done() {
			return Message{}, ErrSyntax
		}
		return Message{}, ErrInvalid
	}
	d := decoder{Decoder: o}
	if !s.Object(func(key string) bool { return d.member(s, key) }) || !s.Done() {
		return Message{}, ErrSyntax
	}
	return d.finish()
}

// A decoder collects the members of one message.
type decoder struct {
	m        Message
	version  bool // "jsonrpc": "2.0"
	badID    bool
	badMeth  bool
	consumed bool // params were read as a Call, and are no longer raw JSON

	Decoder
}

func (d *decoder) member(s *jsontext.Scanner, key string) bool {
	switch key {
	case "jsonrpc":
		raw, ok := s.Raw()
		d.version = string(raw) == `"2.0"`
		return ok
	case "id":
		return d.id(s)
	case "method":
		if s.Peek() != '"' {
			d.badMeth = true
			return s.Skip()
		}
		method, ok := s.Text()
		d.m.Method, d.badMeth = method.Value, false
		return ok
	case "params":
		if d.m.Method == MethodToolsCall {
			d.consumed = true
			return d.call(s)
		}
		d.consumed = false
		raw, ok := s.Raw()
		d.m.Params = raw
		return ok
	case "result":
		raw, ok := s.Raw()
		d.m.Result, d.m.Response = raw, true
		return ok
	case "error":
		d.m.Response = true
	}
	return s.Skip()
}

func (d *decoder) id(s *jsontext.Scanner) bool {
	c := s.Peek()
	raw, ok := s.Raw()
	d.m.ID, d.badID = raw, false
	if c != '"' && c != '-' && (c < '0' || c > '9') {
		d.m.ID, d.badID = nil, true
	}
	return ok
}

// finish checks the whole message.
func (d *decoder) finish() (Message, error) {
	m := d.m
	switch {
	case len(m.ID) > maxID:
		m.ID = nil
		return m, ErrInvalid
	case !d.version || d.badMeth:
		return m, ErrInvalid
	case m.Response && m.Method == "":
		return m, nil
	case m.Method == "" || d.badID:
		return m, ErrInvalid
	case m.Method != MethodToolsCall:
		if d.consumed { // two methods in one message; the first one used up the params
			return m, ErrInvalid
		}
		return m, nil
	}
	m.Response, m.Result = false, nil
	if !d.consumed && m.Params != nil { // params came before the method
		again := jsontext.NewScanner(m.Params)
		if !d.call(again) {
			return m, ErrSyntax
		}
		m.Call = d.m.Call
	}
	m.Params = nil
	return m, nil
}

// maxID bounds a raw id in bytes, because the answer repeats it.
const maxID = 1 << 10

// call reads the params of tools/call.
func (d *decoder) call(s *jsontext.Scanner) bool {
	d.m.Call = Call{names: d.Arguments}
	if s.Peek() != '{' {
		return s.Skip()
	}
	return s.Object(func(key string) bool {
		switch key {
		case "name":
			return want(s, &d.m.Call.Name)
		case "arguments":
			return d.given(s)
		}
		return s.Skip()
	})
}

func (d *decoder) given(s *jsontext.Scanner) bool {
	c := &d.m.Call
	c.Arguments = s.Peek() == '{'
	c.texts = make([]jsontext.Text, len(c.names))
	if !c.Arguments {
		return s.Skip()
	}
	return s.Object(func(key string) bool {
		if i := slices.Index(c.names, key); i >= 0 {
			if d.KeepJSON && s.Peek() == '"' {
				return aside(s, &c.texts[i])
			}
			return want(s, &c.texts[i])
		}
		return s.Skip()
	})
}

// want reads a value that should be a string.
func want(s *jsontext.Scanner, t *jsontext.Text) bool {
	if s.Peek() != '"' {
		*t = jsontext.Text{State: jsontext.NotText}
		return s.Skip()
	}
	var ok bool
	*t, ok = s.Text()
	return ok
}

// keptFrom is the size in bytes from which JSON is kept: encoding a smaller text again costs little.
const keptFrom = 16 << 10

// aside reads a string beside its JSON.
func aside(s *jsontext.Scanner, t *jsontext.Text) bool {
	var ok bool
	if *t, ok = s.Aside(); len(t.JSON) < keptFrom {
		t.JSON = ""
	}
	return ok
}

// IsBatch reports whether a body is an array.
func IsBatch(body []byte) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '['
}

// SplitBatch returns the raw JSON of an array's elements, at most limit of them.
func SplitBatch(body []byte, limit int) ([][]byte, error) {
	s := jsontext.NewScanner(body)
	var parts [][]byte
	ok := s.Array(func() bool {
		raw, ok := s.Raw()
		parts = append(parts, raw)
		return ok
	})
	switch {
	case !ok || !s.Done():
		return nil, ErrSyntax
	case len(parts) == 0 || len(parts) > limit:
		return nil, ErrInvalid
	}
	return parts, nil
}
