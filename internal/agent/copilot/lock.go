package copilot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// homeVariable moves the folder that Copilot CLI keeps its files in.
const homeVariable = "COPILOT_HOME"

// Program is its name in errors about its settings.
const Program settingsfile.Program = Label

// home is the folder that Copilot CLI keeps its files in; it need not exist.
func home(getenv func(string) string) (string, error) {
	return settingsfile.Home(getenv, homeVariable, ".copilot")
}

// SettingsPath is the user's own settings file, absolute. It need not exist.
func SettingsPath(getenv func(string) string) (string, error) {
	home, err := home(getenv)
	return filepath.Join(home, "config.json"), err
}

// Mode says that Copilot CLI looks for a companion without being told to (SPEC GC-5).
func Mode(_, _ string, _ func(string) string) finding.Finding {
	return finding.Finding{Level: finding.OK, What: "it looks for a companion by itself, and finds one that starts later"}
}

// Locks are Copilot CLI's lock files (SPEC GC-1).
func Locks() lockfile.Kind {
	return lockfile.Kind{Agent: Label, Home: home, HomeVariable: homeVariable, Encode: encode, Decode: decode, AnyName: true}
}

// lockJSON is the form on disk. Pollux marks the locks that Sweep may remove.
type lockJSON struct {
	Socket    string            `json:"socketPath"`
	Scheme    string            `json:"scheme"`
	Headers   map[string]string `json:"headers"`
	PID       int               `json:"pid"`
	IDE       string            `json:"ideName"`
	Timestamp int64             `json:"timestamp"`
	Folders   []string          `json:"workspaceFolders"`
	Pollux    bool              `json:"pollux,omitempty"`
}

// encode renders the file. A folder that is not UTF-8 is an error: no JSON can name it.
func encode(l *lockfile.Lock) ([]byte, error) {
	for _, folder := range l.Roots {
		if !utf8.ValidString(folder) {
			return nil, fmt.Errorf("the name of the folder %q is not UTF-8, which %s needs; rename the folder", folder, Label)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(lockJSON{
		Socket: l.Socket, Scheme: l.Scheme, Headers: map[string]string{TokenHeader: TokenScheme + l.Token}, PID: l.PID, IDE: l.DisplayName,
		Timestamp: l.Since.UnixMilli(), Folders: l.Roots, Pollux: true,
	})
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// decode reads a file. Members that it does not know are skipped.
func decode(data []byte) (*lockfile.Lock, error) {
	var v lockJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%w: %v", lockfile.ErrLock, err)
	}
	token, ok := bytes.CutPrefix([]byte(v.Headers[TokenHeader]), []byte(TokenScheme))
	if !ok || v.Socket == "" {
		return nil, fmt.Errorf("%w: it names no socket, or no token for it", lockfile.ErrLock)
	}
	return &lockfile.Lock{Socket: v.Socket, Scheme: v.Scheme, Roots: v.Folders, Token: string(token), PID: v.PID, Name: v.IDE, DisplayName: v.IDE, Ours: v.Pollux}, nil
}
