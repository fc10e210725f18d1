package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// oneValue reads what a tool printed as one JSON value, and keeps it byte for
// byte: big numbers and the order of members too. When it is none, why says so in
// a way that helps whoever wrote the tool.
func oneValue(out []byte, cut bool) (value json.RawMessage, why string) {
	out = bytes.TrimRight(out, " \t\r\n") // places in messages count from the beginning
	dec := json.NewDecoder(bytes.NewReader(out))
	err := dec.Decode(&value)
	switch {
	case len(out) == 0:
		return nil, "it printed nothing"
	case cut:
		return nil, "its output was cut off"
	case err != nil:
		return nil, broken(out, err)
	case !utf8.Valid(out):
		return nil, "its output is not UTF-8"
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, "more than one JSON value was printed; the second begins at " + at(out, dec.InputOffset())
	}
	return value, ""
}

func broken(out []byte, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("its output is no JSON: %v, at %s", syntax, at(out, max(0, syntax.Offset-1)))
	}
	return "its output is no JSON: it ends before the value does"
}

// at is a place in a text as people count: lines and columns from 1.
func at(text []byte, offset int64) string {
	before := text[:min(offset, int64(len(text)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}
