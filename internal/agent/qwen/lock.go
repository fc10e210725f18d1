package qwen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// Locks are Qwen Code's lock files (SPEC ).
func Locks() lockfile.Kind {
	return lockfile.Kind{Agent: Label, Home: folder, HomeVariable: homeVariable, Encode: encode, Decode: decode}
}

// lockJSON is the form on disk.
type lockJSON struct {
	Port          int             `json:"port,omitempty"`
	WorkspacePath string          `json:"workspacePath"`
	AuthToken     string          `json:"authToken,omitempty"`
	PPID          int             `json:"ppid,omitempty"`
	IDEName       string          `json:"ideName,omitempty"`
	IDEInfo       *ideInfo        `json:"ideInfo,omitempty"`
	Stdio         *lockfile.Stdio `json:"stdio,omitempty"`
	Pollux        bool            `json:"pollux,omitempty"` // our own mark; Qwen Code ignores it
}

type ideInfo struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

// encode renders the file. It fails for a root that is not absolute or not UTF-8: no Qwen Code would find it.
func encode(l *lockfile.Lock) ([]byte, error) {
	for _, root := range l.Roots {
		if !filepath.IsAbs(root) {
			return nil, fmt.Errorf("the folder %q is not an absolute path", root)
		}
		if !utf8.ValidString(root) {
			return nil, fmt.Errorf("the name of the folder %q is not UTF-8, which Qwen Code needs; rename the folder", root)
		}
	}
	roots, err := workspacePath(l)
	if err != nil {
		return nil, err
	}
	return compact(lockJSON{
		Port: l.Port, WorkspacePath: roots, AuthToken: l.Token, PPID: l.PID, IDEName: l.DisplayName,
		IDEInfo: &ideInfo{l.Name, l.DisplayName}, Stdio: l.Stdio, Pollux: true,
	})
}

// workspacePath holds the folders as a JSON array inside the string (SPEC Q-2). When no process is named, Qwen Code expects the name of
// one folder there, and deletes the file when it finds no folder of that name (SPEC Q-3).
func workspacePath(l *lockfile.Lock) (string, error) {
	if l.PID == 0 && len(l.Roots) == 1 {
		return l.Roots[0], nil
	}
	roots, err := compact(append([]string{}, l.Roots...))
	return string(roots), err
}

// compact returns JSON on one line, without escapes for < > &.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// decode reads a lock file and skips unknown members. A file with neither a port nor a command is a lockfile.ErrLock.
func decode(data []byte) (*lockfile.Lock, error) {
	var v lockJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%w: %v", lockfile.ErrLock, err)
	}
	l := &lockfile.Lock{Port: v.Port, Roots: split(v.WorkspacePath), Token: v.AuthToken, PID: v.PPID, DisplayName: v.IDEName, Stdio: v.Stdio, Ours: v.Pollux}
	if v.IDEInfo != nil {
		l.Name, l.DisplayName = v.IDEInfo.Name, v.IDEInfo.DisplayName
	}
	if l.Stdio != nil && l.Stdio.Command == "" {
		l.Stdio = nil
	}
	if l.Port < 0 || l.Port > 65535 {
		return nil, fmt.Errorf("%w: the port is %d", lockfile.ErrLock, l.Port)
	}
	if l.Port == 0 && l.Stdio == nil {
		return nil, fmt.Errorf("%w: it names neither a port nor a command", lockfile.ErrLock)
	}
	return l, nil
}

// split reads workspacePath: a JSON array of folders, or folders joined by the system's list separator.
func split(text string) []string {
	var roots []string
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &roots) == nil {
		return roots
	}
	if text == "" {
		return nil
	}
	return filepath.SplitList(text)
}
