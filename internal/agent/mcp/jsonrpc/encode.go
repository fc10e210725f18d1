package jsonrpc

import (
	"strconv"

	"github.com/pollux-companion/pollux/internal/jsontext"
)

// AppendResult appends the response to a request up to its result. The caller appends the result and "}".
func AppendResult(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// Result returns a response with a result of raw JSON.
func Result(id []byte, result string) []byte {
	dst := AppendResult(make([]byte, 0, len(id)+len(result)+48), id)
	dst = append(dst, result...)
	return append(dst, '}')
}

// Error returns an error response; a nil id becomes null.
func Error(id []byte, code int, message string) []byte { return ErrorData(id, code, message, "") }

// ErrorData is Error with data of raw JSON; "" means no data.
func ErrorData(id []byte, code int, message, data string) []byte {
	if id == nil {
		id = []byte("null")
	}
	dst := make([]byte, 0, len(id)+jsontext.Room(message)+len(data))
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsontext.AppendString(dst, message)
	if data != "" {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, `}}`...)
}

// Failed returns a tool's error result; text says what to do (SPEC F-2).
func Failed(id []byte, text string) []byte {
	dst := AppendResult(make([]byte, 0, len(id)+jsontext.Room(text)+64), id)
	dst = append(dst, `{"content":[{"type":"text","text":`...)
	dst = jsontext.AppendString(dst, text)
	return append(dst, `}],"isError":true}}`...)
}

// Texts returns a tool's result with one block for each text.
func Texts(id []byte, texts ...string) []byte {
	size := len(id) + 64
	for _, t := range texts {
		size += jsontext.Room(t)
	}
	dst := AppendResult(make([]byte, 0, size), id)
	dst = append(dst, `{"content":[`...)
	for i, t := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"type":"text","text":`...)
		dst = jsontext.AppendString(dst, t)
		dst = append(dst, '}')
	}
	return append(dst, `]}}`...)
}

// Initialized returns the response to initialize.
func Initialized(id []byte, version, server string) []byte {
	dst := AppendResult(make([]byte, 0, 256), id)
	dst = append(dst, `{"protocolVersion":`...)
	dst = jsontext.AppendString(dst, version)
	dst = append(dst, `,"capabilities":{"tools":{}},"serverInfo":{"name":"pollux","title":"Pollux","version":`...)
	dst = jsontext.AppendString(dst, server)
	return append(dst, `}}}`...)
}
