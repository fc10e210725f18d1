package mcp

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
	"github.com/pollux-companion/pollux/internal/paths"
)

// A claim is where a CLI says that it works. Nobody has checked it. It names a folder for a person, and allows nothing.
type claim struct {
	folder string    // absolute and clean; "" for none
	pid    int       // the process that it says it is; 0 for none
	roots  bool      // it can be asked for its folders
	asked  time.Time // since when its answer is awaited; zero when none is
}

const (
	// rootsID is the id of the question for a session's folders; its answer counts for rootsWithin, up to maxRoots bytes.
	rootsID     = `"roots"`
	rootsWithin = 10 * time.Second
	maxRoots    = 64 << 10
	// maxFolder bounds the name of a folder, in bytes.
	maxFolder = 4096
)

// askRoots asks a CLI that has roots, and listens, for its folders.
func (s *Session) askRoots() {
	s.mu.Lock()
	ask := s.claim.roots
	if ask {
		s.claim.roots, s.claim.asked = false, time.Now()
	}
	s.mu.Unlock()
	if ask {
		_ = s.note(newFrame([]byte(`{"jsonrpc":"2.0","id":` + rootsID + `,"method":"` + jsonrpc.MethodRootsList + `"}`)))
	}
}

// heardRoots takes the first folder of an answer that is awaited.
func (s *Session) heardRoots(m jsonrpc.Message) {
	folder := firstFolder(m.Result)
	s.mu.Lock()
	awaited := !s.claim.asked.IsZero() && time.Since(s.claim.asked) < rootsWithin
	s.claim.asked = time.Time{}
	if awaited {
		s.claim.folder = folder
	}
	s.mu.Unlock()
	if awaited && folder != "" {
		s.server.watch.Send(struct{}{})
	}
}

// firstFolder returns the first folder of an answer to roots/list; "" when it names none of this machine.
func firstFolder(result []byte) string {
	var list struct {
		Roots []struct {
			URI string `json:"uri"`
		} `json:"roots"`
	}
	if len(result) > maxRoots || json.Unmarshal(result, &list) != nil || len(list.Roots) == 0 {
		return ""
	}
	folder, ok := paths.OfURI(list.Roots[0].URI)
	if !ok || len(folder) > maxFolder || !filepath.IsAbs(folder) {
		return ""
	}
	return folder
}

// saidProcess returns the process that a request says it comes from; 0 for none.
func saidProcess(r *http.Request, agent *entrance) int {
	if agent.ProcessHeader == "" {
		return 0
	}
	pid, err := strconv.Atoi(header(r, agent.ProcessHeader))
	if err != nil || pid <= 1 || pid > 1<<30 {
		return 0
	}
	return pid
}
