package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// PortVariable tells Claude Code which lock to take, by its port (SPEC CC-3).
const PortVariable = "CLAUDE_CODE_SSE_PORT"

// ConnectVariable, when it is "true", has Claude Code look for a lock by itself (SPEC CC-3).
const ConnectVariable = "CLAUDE_CODE_AUTO_CONNECT_IDE"

// homeVariable moves the folder that Claude Code keeps its files in.
const homeVariable = "CLAUDE_CONFIG_DIR"

// home is the folder that Claude Code keeps its files in; it need not exist. A lock in both this folder and the usual one makes
// it connect to neither (SPEC CC-1), so there is one only.
func home(getenv func(string) string) (string, error) {
	return settingsfile.Home(getenv, homeVariable, ".claude")
}

// Locks are Claude Code's lock files (SPEC CC-1, CC-2). The port is told by a file's name alone.
func Locks() lockfile.Kind {
	return lockfile.Kind{Agent: "Claude Code", Home: home, HomeVariable: homeVariable, Encode: encode, Decode: decode}
}

// lockJSON is the form on disk. Pollux marks the locks that Sweep may remove.
type lockJSON struct {
	PID       int      `json:"pid"`
	Folders   []string `json:"workspaceFolders"`
	IDE       string   `json:"ideName"`
	Transport string   `json:"transport"`
	Windows   bool     `json:"runningInWindows"`
	Token     string   `json:"authToken"`
	Pollux    bool     `json:"pollux,omitempty"`
}

// encode renders the file. A folder that is not UTF-8 is an error: no JSON can name it.
func encode(l *lockfile.Lock) ([]byte, error) {
	for _, folder := range l.Roots {
		if !utf8.ValidString(folder) {
			return nil, fmt.Errorf("the name of the folder %q is not UTF-8, which Claude Code needs; rename the folder", folder)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(lockJSON{PID: l.PID, Folders: l.Roots, IDE: l.DisplayName, Transport: "ws", Token: l.Token, Pollux: true})
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// decode reads a file. Members that it does not know are skipped.
func decode(data []byte) (*lockfile.Lock, error) {
	var v lockJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%w: %v", lockfile.ErrLock, err)
	}
	return &lockfile.Lock{Roots: v.Folders, Token: v.Token, PID: v.PID, Name: v.IDE, DisplayName: v.IDE, Ours: v.Pollux}, nil
}
