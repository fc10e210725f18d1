// Package bridge writes the extension that tells today's Gemini CLI what pollux offers: its context file is the
// summary, its MCP server is pollux (SPEC P-3).
package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// contextFile is the bridge's context file. It is part of every first prompt and survives compression. It exists only
// if something is offered everywhere: the CLI skips a missing one.
const contextFile = "SUMMARY.md"

// placeFile is the context file for one workspace; the CLI puts the workspace's path into the name. It exists only
// for workspaces whose offer differs.
const (
	places    = "workspaces"
	placeEnd  = "/SUMMARY.md"
	placeFile = places + "${workspacePath}" + placeEnd
)

// Budget is how many tokens the summary may take in every session, as prompt.Tokens counts them. placeBudget is how
// many a workspace may add.
const (
	Budget      = 2000
	placeBudget = 1000
	// gatewayPlace replaces placeBudget if not every tool is a function.
	gatewayPlace = 300
)

// An Offer is what the summaries describe.
type Offer struct {
	// Everywhere is what is offered wherever no workspace rule says otherwise.
	Everywhere *capability.Set
	// In is what is offered in some folders, by absolute path; nil for a folder that offers the same.
	In map[string]*capability.Set
}

// files returns the context files for an offer by a server. A nil file must not exist.
func (o Offer) files(server string) map[string][]byte {
	files := map[string][]byte{contextFile: nil}
	if text := wholeContext(server, o.Everywhere); text != "" {
		files[contextFile] = []byte(text)
	}
	style, budget := prompt.Gemini(server), placeBudget
	if prompt.IsGateway(string(files[contextFile])) {
		style, budget = style.Gateway(), gatewayPlace
	}
	for dir, set := range o.In {
		name, ok := placeOf(dir)
		if !ok {
			continue
		}
		files[name] = nil
		if set == nil {
			continue
		}
		if text := prompt.Addition(o.Everywhere, set, style, budget); text != "" {
			files[name] = []byte(text)
		}
	}
	return files
}

// placeOf returns the name of a workspace's context file; false if the CLI would not read it.
func placeOf(dir string) (string, bool) {
	name := places + filepath.ToSlash(dir) + placeEnd
	decoded, err := url.PathUnescape(name)
	ok := strings.HasPrefix(dir, "/") && len(dir) < 2000 && !strings.Contains(name, "..") && (err != nil || !strings.Contains(decoded, ".."))
	return name, ok
}

// Places lists the workspaces with a summary of their own.
func Places(s *store.Store) []string {
	var dirs []string
	for _, name := range s.BridgeFiles(places) {
		if dir, ok := strings.CutSuffix(strings.TrimPrefix(name, places), placeEnd); ok && dir != "" {
			dirs = append(dirs, filepath.FromSlash(dir))
		}
	}
	return dirs
}

// Told returns what the CLI currently tells a model in a workspace; "" without a bridge.
func Told(s *store.Store, dir string) string {
	text, _ := s.ReadBridge(contextFile)
	if name, ok := placeOf(dir); ok {
		more, _ := s.ReadBridge(name)
		text = append(text, more...)
	}
	return string(text)
}

// timeout is how long the CLI waits for a call, in milliseconds. It is longer than pollux waits for the user's
// consent and the tool together, so the CLI never gives up first.
const timeout = 30 * 60 * 1000

// A Bridge is what Install writes.
type Bridge struct {
	Store *store.Store
	// Command is the absolute path of the pollux that the CLI starts.
	Command string
	// Version is the version of pollux.
	Version string
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

// Install writes or updates the bridge for an offer. It says whether anything changed.
func (b *Bridge) Install(ctx context.Context, o Offer) (bool, error) {
	if !filepath.IsAbs(b.Command) {
		return false, fmt.Errorf("the bridge needs the absolute path of pollux, not %q", b.Command)
	}
	if strings.Contains(b.Command, "$") {
		return false, fmt.Errorf("gemini takes the $ in %q for a variable; put pollux elsewhere and try again", b.Command)
	}
	name, err := b.Store.NameBridge(ctx)
	if err != nil {
		return false, err
	}
	data, err := b.manifest(name)
	if err != nil {
		return false, err
	}
	files := o.files(name)
	files[manifest.FileName] = data
	moved, err := renewRule(b.Store, name) // first: until then the rule allows any server with the old name
	if err != nil {
		return false, err
	}
	changed, err := b.Store.PlaceBridge(ctx, files)
	return changed || moved, err
}

// manifest returns the bridge's manifest, with a server of that name.
func (b *Bridge) manifest(name string) ([]byte, error) {
	return encode(entry{
		Name: store.BridgeName, Version: version(b.Version), Context: []string{contextFile, placeFile},
		Description: "Written by pollux: offers the tools and documents of extensions that you agreed to, each in a sandbox. pollux extensions bridge remove takes it away.",
		Servers: map[string]server{name: {
			Command: b.Command, Args: []string{"extensions", "serve", "--as", name}, Timeout: timeout, Description: "Extensions in a sandbox",
		}},
	})
}

// encode returns indented JSON.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}

// version returns a version that every reader of manifests accepts.
func version(v string) string {
	v = strings.TrimPrefix(v, "v")
	if v == "" || v[0] < '0' || v[0] > '9' {
		return "0.0.0"
	}
	return v
}

// wholeContext returns the context file of every session, for what a server of that name offers everywhere. It is "" if that
// is nothing: then no prompt grows by a word.
func wholeContext(server string, set *capability.Set) string {
	style, budget := prompt.Gemini(server).Fit(set, Budget)
	return prompt.Summarize(set, &prompt.SummaryOptions{Style: style, Budget: budget}).Text
}

// Refresh updates the summaries of an installed bridge. It is false if there is no bridge or nothing to do. A bridge
// whose server is still called Legacy gets a name of its own, and everything that the user allowed stays allowed.
func Refresh(ctx context.Context, s *store.Store, o Offer) (bool, error) {
	if !Installed(s) {
		return false, nil
	}
	if s.BridgeServer() == "" {
		return renew(ctx, s, o)
	}
	files := o.files(s.BridgeServer())
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

// renew installs the bridge again with the command that it has now.
func renew(ctx context.Context, s *store.Store, o Offer) (bool, error) {
	data, err := s.ReadBridge(manifest.FileName)
	if err != nil {
		return false, err
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	b := &Bridge{Store: s, Command: e.only().Command, Version: e.Version}
	return b.Install(ctx, o)
}

// only returns the manifest's server if there is exactly one, otherwise the zero value.
func (e *entry) only() server {
	for _, s := range e.Servers {
		if len(e.Servers) == 1 {
			return s
		}
	}
	return server{}
}

// Installed says whether there is a bridge. It is cheap.
func Installed(s *store.Store) bool {
	_, err := s.ReadBridge(manifest.FileName)
	return err == nil
}

// Remove removes the bridge and everything that belongs to it; false if there is none.
func Remove(ctx context.Context, s *store.Store) (bool, error) {
	policy, err := Headless(ctx, s, false)
	if err != nil {
		return false, err
	}
	removed, err := s.RemoveBridge(ctx)
	return removed || policy, err
}
