package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// oneValue reads a tool's output as one JSON value and keeps it byte for byte, so that big numbers and the order of
// members survive. If it is not one value, why explains that to the tool's author.
func oneValue(out []byte, cut bool) (value json.RawMessage, why string) {
	out = bytes.TrimRight(out, " \t\r\n") // only at the end, so that positions in messages stay right
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

// at returns a position in a text, with line and column counted from 1.
func at(text []byte, offset int64) string {
	before := text[:min(offset, int64(len(text)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}
