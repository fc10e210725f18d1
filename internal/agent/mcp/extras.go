package mcp

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/door"
	"github.com/pollux-companion/pollux/internal/jsontext"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// keepAlive serves SPEC T-9.
func (s *Server) keepAlive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header()["Allow"] = []string{"GET"}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	b := jsontext.AppendString([]byte(`{"version":`), s.o.Version)
	answer(w, http.StatusOK, append(b, '}'))
}

// writeFile serves SPEC T-11. Options.WriteFile decides where a file may be written.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.o.WriteFile == nil:
		writeFailed(w, http.StatusForbidden, "writing files is off; pollux serve --allow-write-file turns it on")
		return
	case r.Method != http.MethodPost:
		w.Header()["Allow"] = []string{"POST"}
		writeFailed(w, http.StatusMethodNotAllowed, "use POST")
		return
	case !isJSON(header(r, "Content-Type")):
		writeFailed(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return
	}
	body, release, err := s.bodies.Read(r.Body, r.ContentLength, door.MaxBody)
	defer release()
	if err != nil {
		refuseBody(w, err)
		return
	}
	if !text.Exact(body) { // refuse a text that decoding would change
		writeFailed(w, http.StatusBadRequest, "the body holds bytes that are not UTF-8, or half a character (a lone surrogate): nothing was written; send the text whole")
		return
	}
	var request struct{ Path, Content *string }
	if err := json.Unmarshal(body, &request); err != nil || request.Path == nil || request.Content == nil {
		writeFailed(w, http.StatusBadRequest, `the body must be {"path": "<absolute>", "content": "…"}`)
		return
	}
	if err := s.o.WriteFile(*request.Path, []byte(*request.Content)); err != nil {
		writeFailed(w, writeStatus(err), err.Error())
		return
	}
	answer(w, http.StatusOK, []byte(`{"status":"success"}`))
}

// writeStatus returns the HTTP status for an error of package workspace.
func writeStatus(err error) int {
	switch {
	case errors.Is(err, workspace.ErrOutside), errors.Is(err, workspace.ErrProtected), errors.Is(err, fs.ErrPermission):
		return http.StatusForbidden
	case errors.Is(err, workspace.ErrBadPath):
		return http.StatusBadRequest
	case errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound
	case errors.Is(err, workspace.ErrNotFile), errors.Is(err, workspace.ErrChanged), errors.Is(err, fs.ErrExist):
		return http.StatusConflict
	default:
		return http.StatusInternalServerError
	}
}

func writeFailed(w http.ResponseWriter, status int, message string) {
	b := jsontext.AppendString([]byte(`{"status":"error","message":`), message)
	answer(w, status, append(b, '}'))
}
