package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// PortVariable tells Claude Code which lock to take, by its port (SPEC CC-3).
const PortVariable = "CLAUDE_CODE_SSE_PORT"

// ConnectVariable, when it is "true", has Claude Code look for a lock by itself (SPEC CC-3).
const ConnectVariable = "CLAUDE_CODE_AUTO_CONNECT_IDE"

// Home is the folder that Claude Code keeps its files in; it need not exist. A lock in both this folder and the usual one makes
// it connect to neither (SPEC CC-1), so there is one only.
func Home(getenv func(string) string) (string, error) {
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home folder for Claude Code's files: %w", err)
	}
	return filepath.Join(home, ".claude"), nil
}

// A Lock is the content of a lock file (SPEC CC-1, CC-2).
type Lock struct {
	// PID is the editor's. Claude Code deletes a lock whose process is gone.
	PID     int
	Folders []string // absolute
	IDE     string   // as it is shown
	Token   string
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
func (l *Lock) encode() ([]byte, error) {
	for _, folder := range l.Folders {
		if !utf8.ValidString(folder) {
			return nil, fmt.Errorf("the name of the folder %q is not UTF-8, which Claude Code needs; rename the folder", folder)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(lockJSON{PID: l.PID, Folders: l.Folders, IDE: l.IDE, Transport: "ws", Token: l.Token, Pollux: true})
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// A Place is the lock file of one companion, from Put to Remove. Its methods are for one goroutine at a time.
type Place struct{ file *lockfile.File }

// NewPlace names the lock file of a port below home without touching the disk. The port is told by the file's name alone (SPEC CC-1).
func NewPlace(home string, port int) *Place {
	return &Place{lockfile.New(filepath.Join(home, "ide", strconv.Itoa(port)+".lock"))}
}

// Path is the file's absolute path.
func (p *Place) Path() string { return p.file.Path() }

// Put writes the lock, 0600 and atomically, unless it says the same already.
func (p *Place) Put(l *Lock) error {
	data, err := l.encode()
	if err != nil {
		return err
	}
	if err := p.file.Put(data); err != nil {
		return fmt.Errorf("Claude Code does not find this companion: %w", err)
	}
	return nil
}

// Remove deletes the file as long as it is what Put wrote. It may be called at any time and again.
func (p *Place) Remove() error { return p.file.Remove() }

// Sweep removes the locks that companions of pollux's left below home and whose process is gone, and returns their paths.
// Another program's are never touched.
func Sweep(home string) (removed []string) {
	return lockfile.Sweep(filepath.Join(home, "ide"), func(data []byte) (int, bool) {
		var l lockJSON
		return l.PID, json.Unmarshal(data, &l) == nil && l.Pollux
	})
}
