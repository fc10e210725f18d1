package codex

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxFrame bounds a frame of Codex's, in bytes: its questions are short.
const maxFrame = 1 << 20

// errFrame marks bytes that are no frame.
var errFrame = errors.New("not a frame of Codex's")

// readFrame reads one message: its length as four bytes, the lowest first, and that many bytes of JSON (SPEC CX-1). io.EOF is an end
// between two messages.
func readFrame(r io.Reader) (m message, err error) {
	body, err := readBody(r)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: %w", errFrame, err)
	}
	return m, nil
}

func readBody(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n == 0 || n > maxFrame {
		return nil, fmt.Errorf("%w: it says that it has %d bytes", errFrame, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	return body, nil
}

// frame is v as one message.
func frame(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}

// A message is a question of Codex's. Members that are not here are skipped.
type message struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	Source    string `json:"sourceClientId"`
	Method    string `json:"method"`
	Params    struct {
		WorkspaceRoot string `json:"workspaceRoot"`
	} `json:"params"`
}

// A response answers one.
type response struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	Result    string `json:"resultType"` // "success" or "error"
	Method    string `json:"method,omitempty"`
	HandledBy string `json:"handledByClientId,omitempty"`
	Value     any    `json:"result,omitempty"`
	Error     string `json:"error,omitempty"`
}
