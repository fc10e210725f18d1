package lsp

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// A list takes what editors write for an empty list too: {} from Lua, null
// from Emacs. A single value counts as a list of it.
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

// decode reads parameters and forgives fields of a wrong type, which then are
// as if they had not been sent: "[]" for an empty object is the usual one.
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

// errInexact marks a text that its editor could not say exactly.
var errInexact = errors.New("the text holds bytes or halves of characters that are not Unicode")

// exact decodes a text of a diff, which must not be changed on the way (SPEC
// F-6): what encoding/json would replace is an error.
func exact(raw json.RawMessage) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("no text")
	}
	if !text.Exact(raw) {
		return "", errInexact
	}
	return s, nil
}
