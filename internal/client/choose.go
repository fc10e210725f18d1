package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Choice is how the CLI chose among the discovery files, told so that a person can follow it.
type Choice struct {
	// Editor is the process that the CLI takes for its editor. The CLI only sorts by it.
	Editor Editor
	// Folder is the folder of the discovery files.
	Folder string
	// Candidates are the files in the order in which the CLI prefers them. A file with the
	// old name (without a port) stands first.
	Candidates []Candidate
	// Taken is the index of the chosen one, -1 for none.
	Taken int
	// Why names the rule of the choice.
	Why string
	// Config is the content of the file taken, nil for none.
	Config *Config
	// IDE is the CLI's name for the editor; nil when the CLI says that it supports none here.
	IDE *IDE
	// Fault is the error with which a file makes the CLI itself fail.
	Fault error
}

// A Candidate is one file in the folder.
type Candidate struct {
	Name string
	// PID is the number in the name, as JavaScript reads it. It may be too large for any process.
	PID float64
	// Old says that the name has no port. The CLI takes such a file without checking its workspace.
	Old bool
	// Own says that PID is the editor's; Alive that such a process exists.
	Own, Alive bool
	// Problem says why the content cannot be used; "" when it can.
	Problem string
	// UID is the owner of the file, when the Problem is that it is another user's; otherwise -1.
	UID int
	// Config is nil when there is a Problem.
	Config *Config
	// Mismatch says why the workspace does not fit; nil when it does.
	Mismatch error
	checked  bool // the workspace was looked at
}

// Choose replays the CLI's choice among the discovery files of a world (SPEC K-1).
func Choose(w *World) *Choice {
	w = w.orHere()
	c := &Choice{Editor: findEditor(w), Folder: w.Folder(), Taken: -1}
	if err := c.choose(w); err != nil {
		c.Fault, c.Taken, c.Config = err, -1, nil
		return c
	}
	if c.Taken >= 0 {
		c.Config = c.Candidates[c.Taken].Config
	}
	c.IDE = detect(w, c.Config, c.Editor.Command)
	return c
}

func (c *Choice) choose(w *World) error {
	if old, ok := c.oldFile(w); ok {
		c.Candidates = append(c.Candidates, old)
	}
	c.Candidates = append(c.Candidates, c.list(w)...)
	if len(c.Candidates) > 0 && c.Candidates[0].Old && c.Candidates[0].Config != nil {
		c.Taken, c.Why = 0, "it has the old name, with the editor's process and no port"
		return nil
	}
	var fits, reads []int
	for i := range c.Candidates {
		cand := &c.Candidates[i]
		if cand.Config == nil {
			continue
		}
		reads = append(reads, i)
		path, given, err := cand.Config.Workspace()
		if err == nil {
			cand.Mismatch, err = validate(w, path, given)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", cand.Name, err)
		}
		cand.checked = true
		if cand.Mismatch == nil {
			fits = append(fits, i)
		}
	}
	port := w.Getenv("GEMINI_CLI_IDE_SERVER_PORT")
	switch {
	case len(fits) == 1:
		c.Taken, c.Why = fits[0], "the only one whose workspace holds the folder"
	case len(fits) > 1:
		c.Taken, c.Why = c.pick(fits, port, "the first whose workspace holds the folder")
	case len(reads) > 0:
		c.Taken, c.Why = c.pick(reads, port, "none fits; the first is taken to say so")
	}
	return nil
}

// pick takes the file with the environment's port, otherwise the first.
func (c *Choice) pick(of []int, port, why string) (int, string) {
	for _, i := range of {
		if text, ok := c.Candidates[i].Config.Port(); ok && port != "" && text == port {
			return i, "GEMINI_CLI_IDE_SERVER_PORT names its port"
		}
	}
	return of[0], why
}

// oldFile returns the file of companions from before names had ports.
func (c *Choice) oldFile(w *World) (Candidate, bool) {
	name := fmt.Sprintf("gemini-ide-server-%d.json", c.Editor.PID)
	cand := Candidate{Name: name, PID: float64(c.Editor.PID), Old: true, Own: true, Alive: w.Alive(c.Editor.PID), UID: -1}
	if _, err := os.Lstat(filepath.Join(c.Folder, name)); err != nil {
		return cand, false
	}
	cand.read(w, filepath.Join(c.Folder, name))
	return cand, true
}

// list reads the other files, in the CLI's order.
func (c *Choice) list(w *World) []Candidate {
	entries, err := os.ReadDir(c.Folder) // by name, as Node lists them
	if err != nil {
		return nil
	}
	var all []Candidate
	for _, e := range entries {
		pid, ok := pidOf(e.Name())
		if !ok {
			continue
		}
		cand := Candidate{Name: e.Name(), PID: pid, UID: -1}
		cand.Own = pid == float64(c.Editor.PID)
		cand.Alive = pid > 0 && (*w.Windows || pid <= math.MaxInt32 && w.Alive(int(pid)))
		all = append(all, cand)
	}
	slices.SortStableFunc(all, before)
	for i := range all {
		all[i].read(w, filepath.Join(c.Folder, all[i].Name))
	}
	return all
}

// before sorts the editor's own process first, then living processes, then larger numbers.
func before(a, b Candidate) int {
	for _, pair := range [][2]bool{{a.Own, b.Own}, {a.Alive, b.Alive}} {
		if pair[0] != pair[1] {
			if pair[0] {
				return -1
			}
			return 1
		}
	}
	switch {
	case a.PID > b.PID:
		return -1
	case a.PID < b.PID:
		return 1
	}
	return 0
}

// pidOf reads gemini-ide-server-PID-PORT.json.
func pidOf(name string) (float64, bool) {
	middle, ok := strings.CutPrefix(name, "gemini-ide-server-")
	middle, ok2 := strings.CutSuffix(middle, ".json")
	pid, port, ok3 := strings.Cut(middle, "-")
	if !ok || !ok2 || !ok3 || !digits(pid) || !digits(port) {
		return 0, false
	}
	n, err := strconv.ParseFloat(pid, 64)
	return n, err == nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// maxConfig bounds a file that is read, in bytes; the CLI has no bound.
const maxConfig = 16 << 20

// read reads the file as the CLI does, with one exception: the CLI follows a link of another user's to a file of this user's, which can
// name a command, and pollux does not.
func (cand *Candidate) read(w *World, path string) {
	entry, err := os.Lstat(path)
	if err == nil && cand.others(w, entry) {
		if entry.Mode()&os.ModeSymlink != 0 {
			cand.Problem = fmt.Sprintf("it is a link that user %d has made; Gemini CLI would follow it", cand.UID)
		}
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		cand.Problem = "it cannot be read: " + safefile.Cause(err).Error()
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		cand.Problem = "it cannot be read: " + safefile.Cause(err).Error()
		return
	}
	if cand.others(w, info) {
		return
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		cand.Problem = "it is not a file"
		return
	}
	data, err := readAll(f, info.Size())
	if err != nil {
		cand.Problem = "it cannot be read: " + safefile.Cause(err).Error()
		return
	}
	config, problem := parseConfig(data)
	cand.Config, cand.Problem = config, problem
}

// others says whether a file or link belongs to another user, and makes that the Problem.
func (cand *Candidate) others(w *World, info os.FileInfo) bool {
	uid, known := ownerOf(info)
	if !known || uid == *w.UID {
		return false
	}
	cand.Problem, cand.UID = fmt.Sprintf("it belongs to user %d, not to you (user %d)", uid, *w.UID), uid
	return true
}

func readAll(f *os.File, size int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(size) + 1)
	_, err := b.ReadFrom(f)
	return b.Bytes(), err
}

// A Config is the content of a discovery file as the CLI takes it: any object. Its
// members are checked only when they are needed.
type Config struct{ members map[string]any }

// parseConfig reads a file's content; problem says why it cannot be used.
func parseConfig(data []byte) (config *Config, problem string) {
	if len(data) == 0 {
		return nil, "it is empty"
	}
	v, err := parseJSON(data)
	if err != nil {
		return nil, "it is not JSON: " + err.Error()
	}
	switch v := v.(type) {
	case map[string]any:
		return &Config{v}, ""
	case []any:
		return &Config{}, "" // to JavaScript an object, without the members that matter
	}
	return nil, "it is not a JSON object"
}

func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err == nil {
		return nil, fmt.Errorf("something follows the value")
	} else if rest := bytes.Trim(data[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, fmt.Errorf("something follows the value")
	}
	return v, nil
}

// Port returns the member port as text; ok is false when there is none.
func (c *Config) Port() (text string, ok bool) {
	if c == nil {
		return "", false
	}
	v, ok := c.members["port"]
	return scriptText(v), ok
}

// Workspace returns the member workspacePath. It fails, as the CLI does, when that is no text.
func (c *Config) Workspace() (path string, given bool, err error) {
	if c == nil {
		return "", false, nil
	}
	v, ok := c.members["workspacePath"]
	if !ok {
		return "", false, nil
	}
	path, ok = v.(string)
	if !ok {
		return "", true, fmt.Errorf("workspacePath is %s, which makes the CLI fail", scriptText(v))
	}
	return path, true, nil
}

// token returns the member authToken; ok is false when it is missing or null.
func (c *Config) token() (token string, ok bool) {
	if c == nil {
		return "", false
	}
	v := c.members["authToken"]
	if v == nil {
		return "", false
	}
	return scriptText(v), true
}

// IDE returns the member ideInfo, when both of its names are given.
func (c *Config) IDE() (IDE, bool) {
	if c == nil {
		return IDE{}, false
	}
	info, _ := c.members["ideInfo"].(map[string]any)
	ide := IDE{}
	if truthy(info["name"]) && truthy(info["displayName"]) {
		ide = IDE{scriptText(info["name"]), scriptText(info["displayName"])}
	}
	return ide, ide != IDE{}
}

// stdio returns the member stdio (SPEC K-4).
func (c *Config) stdio() (command string, args []string, ok bool) {
	if c == nil {
		return "", nil, false
	}
	m, _ := c.members["stdio"].(map[string]any)
	command, ok = m["command"].(string)
	list, _ := m["args"].([]any)
	for _, a := range list {
		args = append(args, scriptText(a))
	}
	return command, args, ok && command != ""
}
