package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/proc"
)

func fileProbes() []probe {
	return []probe{
		{"D-1/name", "gemini-ide-server-PID-PORT.json in <tmp>/gemini/ide", (*run).fileName},
		{"D-1/folder", "the folder is the user's alone (0700)", (*run).fileFolder},
		{"D-2/process", "the number in the name is that of a living process", (*run).fileProcess},
		{"D-3/content", "exactly port, workspacePath, authToken and ideInfo", (*run).fileContent},
		{"D-3/port", "the port is the listener's, as a number", (*run).filePort},
		{"D-3/workspace", "every root is absolute, and the CLI finds the folder in them", (*run).fileWorkspace},
		{"D-3/ideInfo", "without it the CLI says that it is not supported", (*run).fileIDE},
		{"D-4/mode", "0600: the token is for the user alone", (*run).fileMode},
		{"A-1/token", "at least 256 bits", (*run).fileToken},
		{"K-1/the CLI finds it", "a CLI in the folder takes this file", (*run).found},
	}
}

// members reads the discovery file.
func (r *run) members() (map[string]json.RawMessage, error) {
	if r.t.File == "" {
		return nil, skip("no discovery file is known: name the companion by --pid, or let conform start it")
	}
	data, err := os.ReadFile(r.t.File)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(data, &m)
}

func (r *run) text(name string) (string, error) {
	m, err := r.members()
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(m[name], &s) != nil {
		return "", fmt.Errorf("%s is %s, not text", name, m[name])
	}
	return s, nil
}

func (r *run) fileName() error {
	if _, err := r.members(); err != nil {
		return err
	}
	_, port, ok := discovery.ParseName(filepath.Base(r.t.File))
	dir := filepath.Dir(r.t.File)
	_, want, _ := net.SplitHostPort(r.t.Addr)
	if !ok || strconv.Itoa(port) != want || discovery.DirIn(filepath.Dir(filepath.Dir(dir))) != dir {
		return fmt.Errorf("it is %s", r.t.File)
	}
	return nil
}

func (r *run) fileFolder() error {
	if _, err := r.members(); err != nil {
		return err
	}
	return private(filepath.Dir(r.t.File), 0o077)
}

func (r *run) fileMode() error {
	if _, err := r.members(); err != nil {
		return err
	}
	return private(r.t.File, 0o177)
}

func (r *run) fileProcess() error {
	if _, err := r.members(); err != nil {
		return err
	}
	pid, _, ok := discovery.ParseName(filepath.Base(r.t.File))
	if !ok || !proc.Alive(pid) {
		return fmt.Errorf("process %d does not live", pid)
	}
	return nil
}

func (r *run) fileContent() error {
	m, err := r.members()
	if err != nil {
		return err
	}
	var have []string
	for name := range m {
		have = append(have, name)
	}
	slices.Sort(have)
	if want := []string{"authToken", "ideInfo", "port", "workspacePath"}; !slices.Equal(have, want) {
		return fmt.Errorf("it has %s", strings.Join(have, ", "))
	}
	return nil
}

func (r *run) filePort() error {
	m, err := r.members()
	if err != nil {
		return err
	}
	_, want, _ := net.SplitHostPort(r.t.Addr)
	if string(m["port"]) != want {
		return fmt.Errorf("it is %s, the listener's is %s", m["port"], want)
	}
	return nil
}

func (r *run) fileWorkspace() error {
	path, err := r.text("workspacePath")
	if err != nil {
		return err
	}
	for _, root := range discovery.SplitWorkspace(path) {
		if !filepath.IsAbs(root) {
			return fmt.Errorf("the root %q is not absolute", root)
		}
	}
	return nil
}

func (r *run) fileIDE() error {
	m, err := r.members()
	if err != nil {
		return err
	}
	var ide discovery.IDE
	if json.Unmarshal(m["ideInfo"], &ide) != nil || ide.Name == "" || ide.DisplayName == "" {
		return fmt.Errorf("ideInfo is %s", m["ideInfo"])
	}
	return nil
}

func (r *run) fileToken() error {
	token, err := r.text("authToken")
	if err != nil {
		return err
	}
	bits := len(token) * 6 // at most, if it is base64
	if strings.Trim(token, "0123456789abcdefABCDEF-") == "" {
		bits = (len(token) - strings.Count(token, "-")) * 4
	}
	if bits < 256 {
		return fmt.Errorf("its %d characters hold %d bits at the most", len(token), bits)
	}
	return nil
}

func (r *run) found() error {
	if _, err := r.members(); err != nil {
		return err
	}
	temp := filepath.Dir(filepath.Dir(filepath.Dir(r.t.File)))
	c := client.Choose(&client.World{Temp: temp, Dir: r.dir, Environ: []string{}})
	switch {
	case c.Fault != nil:
		return c.Fault
	case c.Taken < 0:
		return errors.New("it takes no file")
	case c.Candidates[c.Taken].Mismatch != nil:
		return c.Candidates[c.Taken].Mismatch
	case filepath.Join(c.Folder, c.Candidates[c.Taken].Name) != r.t.File:
		return skip("it takes %s, which another companion of the folder has written", c.Candidates[c.Taken].Name)
	}
	return nil
}
