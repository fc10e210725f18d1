// Package discovery is how Gemini CLI finds a companion: by the discovery file
// and the variables of a terminal (SPEC D-1 to D-7). It removes the files that
// dead companions left behind. It also keeps the record by which a companion
// takes over from one that ended (SPEC A-1).
package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An IDE is how an editor introduces itself to the CLI.
type IDE struct {
	Name        string `json:"name"`        // a short word, as "pollux"
	DisplayName string `json:"displayName"` // for a person, as "Pollux"
}

// A Stdio is the command of a companion that speaks over its standard input and output (SPEC K-4).
type Stdio struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}

// A File is the content of a discovery file.
type File struct {
	Port int
	// Roots are the workspace's folders, absolute, without percent-encoding.
	Roots []string
	Token string
	// IDE is nil in the files of companions that do not introduce themselves.
	IDE *IDE
	// Stdio is nil for a companion that listens on a port. Only pollux's relay has one.
	Stdio *Stdio
}

// fileJSON is the form on disk. Decoding takes the port as a number or, as some companions write it, a string.
type fileJSON struct {
	Port          json.RawMessage `json:"port,omitempty"`
	WorkspacePath *string         `json:"workspacePath"`
	AuthToken     string          `json:"authToken,omitempty"`
	IDEInfo       *IDE            `json:"ideInfo,omitempty"`
	Stdio         *Stdio          `json:"stdio,omitempty"`
}

// Encode renders the file as SPEC D-3 defines it: exactly port, workspacePath, authToken and ideInfo, in this
// order. It fails for a root that is not absolute or not UTF-8: no CLI would find it.
func (f *File) Encode() ([]byte, error) {
	workspace, err := WorkspacePath(f.Roots)
	if err != nil {
		return nil, err
	}
	v := fileJSON{WorkspacePath: &workspace, AuthToken: f.Token, IDEInfo: f.IDE, Stdio: f.Stdio}
	if f.Port != 0 {
		v.Port = strconv.AppendInt(nil, int64(f.Port), 10)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// errFile: the content is not a usable discovery file.
var errFile = errors.New("not a discovery file")

// Parse reads a discovery file as tolerantly as the CLI does: it skips unknown members, and leaves missing ones empty.
// A file with neither a port nor a command is an errFile.
func Parse(data []byte) (*File, error) {
	var v fileJSON
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%w: %v", errFile, err)
	}
	f := &File{Token: v.AuthToken, IDE: v.IDEInfo, Stdio: v.Stdio}
	if v.WorkspacePath != nil {
		f.Roots = SplitWorkspace(*v.WorkspacePath)
	}
	if text := strings.Trim(string(v.Port), `"`); text != "" && text != "null" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("%w: the port is %.20q", errFile, text)
		}
		f.Port = int(port)
	}
	if f.Port == 0 && (f.Stdio == nil || f.Stdio.Command == "") {
		return nil, fmt.Errorf("%w: it names neither a port nor a command", errFile)
	}
	return f, nil
}

const listSeparator = string(os.PathListSeparator)

// encodedSeparator stands for the list separator within a root.
var encodedSeparator = fmt.Sprintf("%%%02X", os.PathListSeparator)

// WorkspacePath joins roots for the discovery file and the variable (SPEC D-3). The CLI
// splits the result at the list separator, and percent-decodes each part.
func WorkspacePath(roots []string) (string, error) {
	parts := make([]string, len(roots))
	for i, r := range roots {
		if !filepath.IsAbs(r) {
			return "", fmt.Errorf("the folder %q is not an absolute path", r)
		}
		if !utf8.ValidString(r) {
			return "", fmt.Errorf("the name of the folder %q is not UTF-8, which Gemini CLI needs; rename the folder", r)
		}
		r = strings.ReplaceAll(r, "%", "%25")
		parts[i] = strings.ReplaceAll(r, listSeparator, encodedSeparator)
	}
	return strings.Join(parts, listSeparator), nil
}

// SplitWorkspace is the opposite of WorkspacePath. A part with a stray percent sign stays as it is.
func SplitWorkspace(s string) []string {
	if s == "" {
		return nil
	}
	parts := strings.Split(s, listSeparator)
	for i, p := range parts {
		parts[i] = DecodePercent(p)
	}
	return parts
}

// DecodePercent decodes percent-encoding as JavaScript's decodeURIComponent does, but a
// malformed sequence leaves the whole text as it was. The CLI does this to every path.
func DecodePercent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out = append(out, s[i])
			continue
		}
		if i+2 >= len(s) {
			return s
		}
		b, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return s
		}
		out = append(out, byte(b))
		i += 2
	}
	if !utf8.Valid(out) {
		return s
	}
	return string(out)
}
