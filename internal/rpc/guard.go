package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// check refuses messages that are not JSON-RPC 2.0. jrpc2 answers such messages itself, but v1.3.6 crashes the
// process when a malformed notification arrives as the connection ends; so no malformed message ever reaches it.
func check(msg []byte) error {
	if len(msg) > 0 && msg[0] == '[' {
		var batch []json.RawMessage
		if err := json.Unmarshal(msg, &batch); err != nil || len(batch) == 0 {
			return fmt.Errorf("%w: a batch that is empty or no JSON", ErrFraming)
		}
		for _, m := range batch {
			if err := checkOne(m); err != nil {
				return err
			}
		}
		return nil
	}
	return checkOne(msg)
}

func checkOne(msg []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(msg, &m); err != nil {
		return fmt.Errorf("%w: no JSON object", ErrFraming)
	}
	var version string
	if json.Unmarshal(m["jsonrpc"], &version) != nil || version != "2.0" {
		return fmt.Errorf("%w: not version 2.0", ErrFraming)
	}
	id := bytes.TrimSpace(m["id"])
	if len(id) > 0 && id[0] != 'n' {
		if id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
			return fmt.Errorf("%w: an id that is neither string nor number", ErrFraming)
		}
		return nil // any other fault can be answered
	}
	return checkNotification(m)
}

func checkNotification(m map[string]json.RawMessage) error {
	for key := range m {
		switch key {
		case "jsonrpc", "id", "method", "params":
		default:
			return fmt.Errorf("%w: a notification with %.40q", ErrFraming, key)
		}
	}
	var method string
	if json.Unmarshal(m["method"], &method) != nil || method == "" {
		return fmt.Errorf("%w: a notification without a method", ErrFraming)
	}
	if params := bytes.TrimSpace(m["params"]); len(params) > 0 && params[0] != '{' && params[0] != '[' {
		return fmt.Errorf("%w: parameters that are neither list nor object", ErrFraming)
	}
	return nil
}
