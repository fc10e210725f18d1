// Package bridge keeps the extension by which today's Gemini CLI knows what
// pollux offers: its context file is the summary, its MCP server is pollux (SPEC P-3).
package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// contextFile is the bridge's context file, which stands in every first prompt and survives compression.
const contextFile = "SUMMARY.md"

// placeFile is the context file for one workspace, whose path the CLI puts into the name. It is there only for workspaces
// that offer something else than the rest.
const (
	places    = "workspaces"
	placeEnd  = "/SUMMARY.md"
	placeFile = places + "${workspacePath}" + placeEnd
)

// Budget is how many tokens the summary may take of every session, as prompt.Tokens counts them, and
// PlaceBudget how many what a workspace adds to it.
const (
	Budget      = 2000
	PlaceBudget = 1000
)

// An Offer is what the summaries tell of.
type Offer struct {
	// Everywhere is what is offered where no rule of a workspace says otherwise.
	Everywhere *capability.Set
	// In is what is offered in each of some folders, by their absolute paths; nil where that is the same.
	In map[string]*capability.Set
}

// files are the context files for an offer; those that are not needed are nil.
func (o Offer) files() map[string][]byte {
	files := map[string][]byte{contextFile: []byte(Context(o.Everywhere))}
	for dir, set := range o.In {
		name, ok := placeOf(dir)
		if !ok {
			continue
		}
		files[name] = nil
		if set == nil {
			continue
		}
		if text := prompt.Addition(o.Everywhere, set, prompt.Gemini, PlaceBudget); text != "" {
			files[name] = []byte(text)
		}
	}
	return files
}

// placeOf is the context file of a workspace; false where the CLI would not read it.
func placeOf(dir string) (string, bool) {
	name := places + filepath.ToSlash(dir) + placeEnd
	decoded, err := url.PathUnescape(name)
	ok := strings.HasPrefix(dir, "/") && len(dir) < 2000 && !strings.Contains(name, "..") && (err != nil || !strings.Contains(decoded, ".."))
	return name, ok
}

// Places are the folders whose workspaces have a summary of their own.
func Places(s *store.Store) []string {
	var dirs []string
	for _, name := range s.BridgeFiles(places) {
		if dir, ok := strings.CutSuffix(strings.TrimPrefix(name, places), placeEnd); ok && dir != "" {
			dirs = append(dirs, filepath.FromSlash(dir))
		}
	}
	return dirs
}

// Told is what the CLI tells a model in a workspace, as the files are now; "" without a bridge.
func Told(s *store.Store, dir string) string {
	text, _ := s.ReadBridge(contextFile)
	if name, ok := placeOf(dir); ok {
		more, _ := s.ReadBridge(name)
		text = append(text, more...)
	}
	return string(text)
}

// timeout is how long the CLI waits for a call, in milliseconds: longer than pollux waits for the
// user's consent and for the tool together, so that the CLI never gives up first.
const timeout = 30 * 60 * 1000

// A Bridge is what Install writes.
type Bridge struct {
	Store *store.Store
	// Command is the absolute path of the pollux that the CLI starts.
	Command string
	// Version is pollux's.
	Version string
}

// State is how the bridge stands.
type State struct {
	Installed bool   `json:"installed"`
	Folder    string `json:"folder"`            // where it is, or would be
	Command   string `json:"command,omitempty"` // what the CLI starts; "" when not installed
	// Missing says that Command is not there.
	Missing bool `json:"missing,omitempty"`
	// Enabled says that the CLI loads it in the working folder.
	Enabled bool `json:"enabled"`
	// Headless says that sessions without a terminal may use the tools, too, by Policy.
	Headless bool   `json:"headless"`
	Policy   string `json:"policy"` // the file that allows it, or would
	// Tokens is what the summary takes of each session, estimated.
	Tokens int `json:"tokens,omitempty"`
}

// entry is the bridge's manifest.
type entry struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Context     []string          `json:"contextFileName"`
	Servers     map[string]server `json:"mcpServers"`
}

type server struct {
	Command     string   `json:"command"`
	Args        []string `json:"args"`
	Timeout     int      `json:"timeout"`
	Description string   `json:"description"`
}

// Install writes the bridge for an offer, or brings it up to date; it says whether anything changed.
func (b *Bridge) Install(ctx context.Context, o Offer) (bool, error) {
	if !filepath.IsAbs(b.Command) {
		return false, fmt.Errorf("the bridge needs the absolute path of pollux, not %q", b.Command)
	}
	if strings.Contains(b.Command, "$") {
		return false, fmt.Errorf("gemini takes the $ in %q for a variable; put pollux elsewhere and try again", b.Command)
	}
	data, err := encode(entry{
		Name: store.BridgeName, Version: version(b.Version), Context: []string{contextFile, placeFile},
		Description: "Written by pollux: offers the tools and documents of extensions that you agreed to, each in a sandbox. pollux extensions bridge remove takes it away.",
		Servers: map[string]server{capability.Bridge: {
			Command: b.Command, Args: []string{"extensions", "serve"}, Timeout: timeout, Description: "Extensions in a sandbox",
		}},
	})
	if err != nil {
		return false, err
	}
	files := o.files()
	files[manifest.FileName] = data
	return b.Store.PlaceBridge(ctx, files)
}

// encode is JSON as people write it.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}

// version is one that every reader of manifests takes.
func version(v string) string {
	v = strings.TrimPrefix(v, "v")
	if v == "" || v[0] < '0' || v[0] > '9' {
		return "0.0.0"
	}
	return v
}

// Context is the context file that every session has, for what is offered everywhere.
func Context(set *capability.Set) string {
	text := prompt.Summarize(set, &prompt.SummaryOptions{Style: prompt.Gemini, Budget: Budget}).Text
	if text == "" {
		text = "No extensions are offered everywhere at the moment; an MCP server of that purpose, " + capability.Bridge + ", is there and lists them when there are some.\n"
	}
	return text
}

// Refresh brings the summaries of an installed bridge up to date; false when there is none, or nothing to do.
func Refresh(ctx context.Context, s *store.Store, o Offer) (bool, error) {
	if !Installed(s) {
		return false, nil
	}
	files := o.files()
	for name, text := range files {
		if now, err := s.ReadBridge(name); err == nil && text != nil && bytes.Equal(now, text) || errors.Is(err, fs.ErrNotExist) && text == nil {
			delete(files, name)
		}
	}
	if len(files) == 0 {
		return false, nil
	}
	return s.PlaceBridge(ctx, files)
}

// Installed says whether there is a bridge; it costs next to nothing.
func Installed(s *store.Store) bool {
	_, err := s.ReadBridge(manifest.FileName)
	return err == nil
}

// Look says how the bridge stands.
func Look(s *store.Store) (State, error) {
	st := State{Folder: filepath.Join(s.Dir(), store.BridgeName), Policy: policyFile(s)}
	st.Headless = ourPolicy(st.Policy)
	data, err := s.ReadBridge(manifest.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return st, fmt.Errorf("the bridge's manifest in %q is damaged (%w); write it anew with: pollux extensions bridge install", st.Folder, err)
	}
	st.Installed, st.Command = true, e.Servers[capability.Bridge].Command
	_, err = os.Stat(st.Command)
	st.Missing = err != nil
	if x, err := s.Get(st.Folder); err == nil {
		st.Enabled = x.EnabledHere
	}
	if text, err := s.ReadBridge(contextFile); err == nil {
		st.Tokens = prompt.Tokens(string(text))
	}
	return st, nil
}

// Remove takes the bridge away with everything that belongs to it; false when there is none.
func Remove(ctx context.Context, s *store.Store) (bool, error) {
	policy, err := Headless(s, false)
	if err != nil {
		return false, err
	}
	removed, err := s.RemoveBridge(ctx)
	return removed || policy, err
}

// policyFile is the user's rule for the CLI's policy engine.
func policyFile(s *store.Store) string {
	return filepath.Join(filepath.Dir(s.Dir()), "policies", "pollux.toml")
}

// policy lets sessions without a terminal call pollux's tools; the CLI asks on a terminal as before. Without it the CLI
// hides the tools of every MCP server from a model that nobody watches.
const policy = `# Written by pollux extensions bridge install --headless; --no-headless removes it.
# Gemini CLI without a terminal (gemini -p) may call every tool that pollux
# offers without asking. pollux itself offers only tools of extensions that you
# agreed to, and runs each in a sandbox with its declared permissions.
[[rule]]
mcpName = "pollux"
toolName = "*"
decision = "allow"
priority = 100
interactive = false
`

// ourPolicy says whether the file is the one that Headless wrote.
func ourPolicy(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && string(data) == policy
}

// CanHeadless says whether Headless may write its rule: not over a file that is the user's own.
func CanHeadless(s *store.Store) error {
	path := policyFile(s)
	if _, err := os.Lstat(path); err == nil && !ourPolicy(path) {
		return fmt.Errorf("%q is not as pollux wrote it; remove it and try again, or write the rule yourself", path)
	}
	return nil
}

// Headless allows or forbids the tools in sessions without a terminal; it says whether anything changed.
func Headless(s *store.Store, on bool) (bool, error) {
	path := policyFile(s)
	_, err := os.Lstat(path)
	there, ours := err == nil, ourPolicy(path)
	switch {
	case on && ours || !on && (!there || !ours): // another file is the user's own
		return false, nil
	case !on:
		if err := os.Remove(path); err != nil {
			return false, err
		}
		_ = os.Remove(filepath.Dir(path)) // only when it is empty
		return true, nil
	}
	if err := CanHeadless(s); err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, safefile.Write(path, []byte(policy), nil)
}
