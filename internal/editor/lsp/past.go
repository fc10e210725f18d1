package lsp

import (
	"encoding/json"

	"github.com/pollux-companion/pollux/internal/rpc"
)

// historyCommand lists past proposals, or shows the texts of the one that is named.
func (s *Server) historyCommand(arguments json.RawMessage) (any, error) {
	id, err := idOf(arguments)
	if err != nil {
		return nil, err
	}
	if id == "" {
		entries, err := s.core.History()
		return obj{"entries": entries}, err
	}
	old, final, err := s.core.Past(id)
	return obj{"id": id, "oldText": old, "finalText": final}, err
}

// undoCommand takes the change of a past proposal back.
func (s *Server) undoCommand(arguments json.RawMessage) (any, error) {
	id, err := idOf(arguments)
	if err == nil && id == "" {
		err = rpc.Errorf(rpc.CodeInvalidParams, "pollux.undo needs the id of an entry; pollux.history lists them")
	}
	if err != nil {
		return nil, err
	}
	return obj{"id": id}, s.core.Undo(id)
}

func idOf(arguments json.RawMessage) (string, error) {
	var p struct {
		ID string `json:"id"`
	}
	return p.ID, decode(arguments, &p)
}
