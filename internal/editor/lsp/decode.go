package lsp

import (
	"bytes"
	"encoding/json"
	"errors"
	"unsafe"

	"github.com/pollux-companion/pollux/internal/jsontext"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A list accepts the empty lists that editors write: {} from Lua, null from Emacs. A
// single value counts as a list with one element.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]T)(l))
	}
	if bytes.Equal(data, []byte("null")) || isEmptyObject(data) {
		*l = nil
		return nil
	}
	var one T
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = []T{one}
	return nil
}

func isEmptyObject(data []byte) bool {
	return len(data) >= 2 && data[0] == '{' && len(bytes.TrimSpace(data[1:len(data)-1])) == 0
}

// decode reads parameters. A field of a wrong type counts as missing: the usual one is
// "[]" for an empty object.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 {
		return nil
	}
	err := json.Unmarshal(params, into)
	var wrongType *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &wrongType) {
		return rpc.Errorf(rpc.CodeInvalidParams, "parameters that cannot be read: %v", err)
	}
	return nil
}

// errInexact: the editor could not send this text exactly.
var errInexact = errors.New("the text holds bytes or halves of characters that are not Unicode")

// exact decodes a text of a diff, which must arrive unchanged (SPEC F-6): a text that
// encoding/json would alter is an error. It overwrites raw.
func exact(raw json.RawMessage) (string, error) {
	in := jsontext.NewScanner(raw)
	if in.Peek() != '"' {
		return "", errors.New("no text")
	}
	t, ok := in.Text()
	if !ok || t.State != jsontext.Good || !in.Done() {
		return "", errInexact
	}
	return t.Value, nil
}

// large is the size in bytes from which parameters with a text are decoded only once.
const large = 8 << 10

// decodeText is decode for parameters with a text, which it puts into content of into. That text is not checked: see exact.
func decodeText(params json.RawMessage, into any, content *json.RawMessage) error {
	if len(params) >= large {
		if _, value, rest, ok := jsontext.CutChecked(params, "content"); ok {
			err := decode(rest, into)
			*content = value
			return err
		}
	}
	return decode(params, into)
}

// A largeText is a text that may be megabytes, with its name. sent is its JSON, when that is known.
type largeText struct{ name, text, sent string }

// withTexts encodes parameters with texts.
func withTexts(params obj, texts ...largeText) rpc.Large {
	head, _ := json.Marshal(params) // cannot fail: pollux made the values
	room := len(head)
	for _, t := range texts {
		if t.sent == "" {
			room += jsontext.Room(t.text)
		}
	}
	var pieces rpc.Large
	b := append(make([]byte, 0, room), head[:len(head)-1]...)
	for _, t := range texts {
		b = append(append(append(b, ',', '"'), t.name...), '"', ':')
		if t.sent == "" {
			b = jsontext.AppendString(b, t.text)
			continue
		}
		pieces = append(pieces, b, unsafe.Slice(unsafe.StringData(t.sent), len(t.sent)))
		b = nil
	}
	return append(pieces, append(b, '}'))
}
