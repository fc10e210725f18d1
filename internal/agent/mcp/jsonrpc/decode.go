package jsonrpc

import (
	"bytes"
	"slices"
)

// Decode reads one message in one pass. It takes the body over: the strings
// of the message lie in it, and it must not be written again. Member order,
// unknown members and white space are free; of duplicate members the last one
// counts. An ErrInvalid message still carries its ID when that could be read.
// Of a tool's arguments it reads those whose names are in arguments.
func Decode(body []byte, arguments ...string) (Message, error) {
	s := &scanner{b: body}
	if s.peek() != '{' {
		if !s.skip() || s.peek() != 0 || s.i < len(s.b) {
			return Message{}, ErrSyntax
		}
		return Message{}, ErrInvalid
	}
	d := decoder{arguments: arguments}
	if !s.object(func(key string) bool { return d.member(s, key) }) || s.peek() != 0 || s.i < len(s.b) {
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
	consumed bool // params were read as a Call, and are not raw JSON any more

	arguments []string // names of the arguments that are wanted
}

func (d *decoder) member(s *scanner, key string) bool {
	switch key {
	case "jsonrpc":
		raw, ok := s.raw()
		d.version = string(raw) == `"2.0"`
		return ok
	case "id":
		return d.id(s)
	case "method":
		if s.peek() != '"' {
			d.badMeth = true
			return s.skip()
		}
		method, ok := s.text()
		d.m.Method, d.badMeth = method.Value, false
		return ok
	case "params":
		if d.m.Method == MethodToolsCall {
			d.consumed = true
			return d.call(s)
		}
		d.consumed = false
		raw, ok := s.raw()
		d.m.Params = raw
		return ok
	case "result", "error":
		d.m.Response = true
	}
	return s.skip()
}

func (d *decoder) id(s *scanner) bool {
	c := s.peek()
	raw, ok := s.raw()
	d.m.ID, d.badID = raw, false
	if c != '"' && c != '-' && (c < '0' || c > '9') {
		d.m.ID, d.badID = nil, true
	}
	return ok
}

// finish judges the whole: what is a request, and is it one.
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
		if d.consumed { // two methods in one message, and the first one's params are used up
			return m, ErrInvalid
		}
		return m, nil
	}
	m.Response = false
	if !d.consumed && m.Params != nil { // params stood before the method
		again := &scanner{b: m.Params}
		if !d.call(again) {
			return m, ErrSyntax
		}
		m.Call = d.m.Call
	}
	m.Params = nil
	return m, nil
}

// maxID is how long an id may be, raw, in bytes: it is written back.
const maxID = 1 << 10

// call reads the params of tools/call.
func (d *decoder) call(s *scanner) bool {
	d.m.Call = Call{names: d.arguments}
	if s.peek() != '{' {
		return s.skip()
	}
	return s.object(func(key string) bool {
		switch key {
		case "name":
			return want(s, &d.m.Call.Name)
		case "arguments":
			return d.given(s)
		}
		return s.skip()
	})
}

func (d *decoder) given(s *scanner) bool {
	c := &d.m.Call
	c.Arguments = s.peek() == '{'
	c.texts = make([]Text, len(c.names))
	if !c.Arguments {
		return s.skip()
	}
	return s.object(func(key string) bool {
		if i := slices.Index(c.names, key); i >= 0 {
			return want(s, &c.texts[i])
		}
		return s.skip()
	})
}

// want reads a value that should be a string.
func want(s *scanner, t *Text) bool {
	if s.peek() != '"' {
		*t = Text{State: NotText}
		return s.skip()
	}
	var ok bool
	*t, ok = s.text()
	return ok
}

// IsBatch says whether a body is an array.
func IsBatch(body []byte) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '['
}

// SplitBatch cuts an array into its elements' raw JSON, at most limit of them.
func SplitBatch(body []byte, limit int) ([][]byte, error) {
	s := &scanner{b: body}
	var parts [][]byte
	ok := s.array(func() bool {
		raw, ok := s.raw()
		parts = append(parts, raw)
		return ok
	})
	switch {
	case !ok || s.peek() != 0 || s.i < len(s.b):
		return nil, ErrSyntax
	case len(parts) == 0 || len(parts) > limit:
		return nil, ErrInvalid
	}
	return parts, nil
}
