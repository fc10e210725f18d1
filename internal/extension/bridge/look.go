package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// State is the state of the bridge.
type State struct {
	Installed bool   `json:"installed"`
	Folder    string `json:"folder"`            // where it is or would be
	Command   string `json:"command,omitempty"` // what the CLI starts; "" if not installed
	// Server is the CLI's name for the bridge's MCP server; "" if not installed.
	Server string `json:"server,omitempty"`
	// Missing says that Command does not exist.
	Missing bool `json:"missing,omitempty"`
	// Enabled says that the CLI loads the bridge in the working folder.
	Enabled bool `json:"enabled"`
	// Headless says that Policy lets sessions without a terminal use the tools.
	Headless bool   `json:"headless"`
	Policy   string `json:"policy"` // the file that allows it, or would
	// Tokens estimates what the summary costs each session.
	Tokens int `json:"tokens,omitempty"`
	// Troubles lists first what stops the bridge, then the rest.
	Troubles []Trouble `json:"troubles,omitempty"`
}

// Works says whether a session in the working folder has the bridge's tools.
func (st *State) Works() bool { return len(st.Troubles) == 0 || !st.Troubles[0].Stops }

// A Trouble is one thing that is wrong with the bridge or around it.
type Trouble struct {
	// Kind is missing, damaged, changed, disabled, shadowed, blocked, guessable or impostor.
	Kind string `json:"kind"`
	// Stops says that a session lacks the bridge's tools, or may lack them.
	Stops bool `json:"stops"`
	// What says in a sentence what happened and where. It is safe to print, even with foreign names in it.
	What string `json:"what"`
	// Mend is the command that helps, or other advice.
	Mend string `json:"mend"`
}

// Command says whether Mend is exactly a command to type.
func (t Trouble) Command() bool {
	return strings.HasPrefix(t.Mend, "pollux ") || strings.HasPrefix(t.Mend, "gemini ")
}

const installCommand = "pollux extensions bridge install"

// Look returns the state of the bridge in the store's working folder.
func Look(s *store.Store) (State, error) {
	st := State{Folder: filepath.Join(s.Dir(), store.BridgeName), Policy: policyFile(s)}
	st.Headless = ruleOf(st.Policy) != ""
	all, err := s.List()
	if err != nil {
		return st, err
	}
	data, err := s.ReadBridge(manifest.FileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st.missing()
	case err != nil:
		return st, err
	default:
		st.look(s, data)
		st.enabled(all)
	}
	st.around(s, all)
	slices.SortStableFunc(st.Troubles, func(a, b Trouble) int {
		switch {
		case a.Stops == b.Stops:
			return 0
		case a.Stops:
			return -1
		}
		return 1
	})
	return st, nil
}

func (st *State) trouble(kind string, stops bool, mend, what string, args ...any) {
	st.Troubles = append(st.Troubles, Trouble{kind, stops, words.Printable(fmt.Sprintf(what, args...)), mend})
}

func (st *State) missing() {
	if _, err := os.Lstat(st.Folder); err == nil {
		st.trouble("missing", true, "pollux extensions uninstall "+store.BridgeName+" && "+installCommand, "there is no bridge: %q holds an extension that is not pollux's", st.Folder)
		return
	}
	st.trouble("missing", true, installCommand, "there is no bridge")
}

// look checks the bridge's own files.
func (st *State) look(s *store.Store, data []byte) {
	st.Installed = true
	if text, err := s.ReadBridge(contextFile); err == nil {
		st.Tokens = prompt.Tokens(string(text))
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil || len(e.Servers) != 1 {
		st.trouble("damaged", true, installCommand, "the bridge's manifest in %q is damaged", st.Folder)
		return
	}
	for name := range e.Servers {
		st.Server = name
	}
	st.Command = e.only().Command
	if _, err := os.Stat(st.Command); err != nil {
		st.Missing = true
		st.trouble("missing", true, installCommand, "%q, which the bridge starts, is not there any more", st.Command)
	}
	known := s.BridgeServer()
	if known == "" && st.Server == Legacy {
		st.trouble("guessable", false, installCommand, "the bridge's server is called %q, which a server of somebody else's may be as well", Legacy)
		return
	}
	b := Bridge{Store: s, Command: st.Command, Version: e.Version}
	if want, err := b.manifest(known); err != nil || !bytes.Equal(want, data) {
		st.trouble("changed", true, installCommand, "the bridge's manifest in %q is not as pollux wrote it", st.Folder)
	}
}

// enabled checks whether the CLI loads the extension here.
func (st *State) enabled(all []*store.Extension) {
	i := slices.IndexFunc(all, (*store.Extension).Bridge)
	if i < 0 {
		return
	}
	st.Enabled = all[i].EnabledHere
	switch {
	case all[i].Problem != "":
		st.trouble("blocked", true, fmt.Sprintf("allow the source %q there, or repair what is named", st.Folder), "Gemini CLI does not load the bridge: %s", all[i].Problem)
	case !st.Enabled:
		st.trouble("disabled", true, "pollux extensions enable "+store.BridgeName, "the bridge is disabled here")
	}
}

// around finds what blocks the bridge, and what could be mistaken for it.
func (st *State) around(s *store.Store, all []*store.Extension) {
	set, trust := s.Servers()
	if st.Installed && trust == clisettings.Distrusted {
		st.trouble("blocked", true, "/permissions in Gemini CLI changes that", "Gemini CLI does not trust this folder, and starts no MCP servers in it")
	}
	if st.Server != "" {
		for _, b := range set.Blocks(st.Server) {
			mend := fmt.Sprintf("change that in %s", b.File)
			if b.Setting == "mcp.allowed" || b.Setting == "admin.mcp.config" {
				mend = fmt.Sprintf("add %q to it", st.Server)
			}
			if b.Setting == "enabled" {
				mend = "gemini mcp enable " + st.Server
			}
			st.trouble("blocked", true, mend, "%s in %q keeps Gemini CLI from starting the bridge's server %q", b.Setting, b.File, st.Server)
		}
	}
	for _, n := range set.Defined {
		st.beside(n.Name, fmt.Sprintf("the settings %q define", n.File), fmt.Sprintf("remove %q from mcpServers there", n.Name))
	}
	for _, x := range all {
		if x.Bridge() {
			continue
		}
		mend := "pollux extensions uninstall " + x.Name
		if x.Name != x.Manifest.Name { // such a name may contain anything
			mend = fmt.Sprintf("remove the folder %q", x.Folder)
		}
		for _, server := range x.Manifest.MCPServers {
			st.beside(server.Name, fmt.Sprintf("the extension %q has", x.Name), mend)
		}
	}
	for _, file := range legacyRules(s) {
		mend := "name the bridge's server in it: " + st.Server
		if file == st.Policy || st.Server == "" || st.Server == Legacy {
			mend = installCommand
		}
		st.trouble("guessable", false, mend, "a rule in %q is about the server %q, which may be anybody's", file, Legacy)
	}
}

// beside checks the name of another server.
func (st *State) beside(name, who, mend string) {
	switch {
	case st.Server != "" && clash(name, st.Server):
		st.trouble("shadowed", true, mend, "%s a server %q: Gemini CLI takes it for the bridge's", who, name)
	case manifest.Passes(name):
		st.trouble("impostor", false, mend, "%s a server %q, which is not pollux's and runs without a sandbox", who, name)
	}
}

// clash says whether Gemini CLI could confuse two servers or their tools.
func clash(a, b string) bool {
	a, b = toolPrefix(a), toolPrefix(b)
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// toolPrefix returns the prefix of the CLI's names for a server's tools.
func toolPrefix(server string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:", r) {
			return r
		}
		return '_'
	}, server+"_")
	if !strings.HasPrefix(name, "mcp_") {
		name = "mcp_" + name
	}
	return name
}
