// Package settings is what the user has decided: the configuration file with its defaults, and, folder by folder, which agents are told
// what the user looks at. It names pollux's folders, and opens the log.
package settings

import (
	"time"
)

// Settings is everything that a user can configure permanently. Command flags override it.
type Settings struct {
	// LogLevel is debug, info, warn or error.
	LogLevel string
	// OpenBrowser lets serve and run open the editor page.
	OpenBrowser bool
	// Resume lets a companion take over the port of one that ended less than ten minutes ago, and accept its token
	// for its sessions (SPEC A-1).
	Resume bool
	// Keep lets a keeper hold the port of connected CLIs open when their editor ends (SPEC L-4). It requires Resume.
	Keep bool
	// AllowWriteFile serves POST /write-file (SPEC T-11).
	AllowWriteFile bool
	// LegacyDiffClosed also sends ide/diffClosed, for CLIs older than ide/diffRejected (SPEC §0).
	LegacyDiffClosed bool
	// ContainerAddress is an IP address of this machine for CLIs in containers; "" for none (SPEC T-8).
	ContainerAddress string
	// AdmitOtherUsers accepts connections from other users of the machine who have a token (SPEC A-5).
	AdmitOtherUsers bool
	// ShareOutside lets agents see the names of files outside the workspace (SPEC C-8).
	ShareOutside bool
	// Ignore lists patterns, in .gitignore's syntax, of files that agents never see, neither names nor content (SPEC
	// C-8).
	Ignore []string
	// Share says what agents, by their names, are told of what the user looks at: "always", "ask" or "never". "*" is for
	// the agents that it does not name; without it, always (SPEC C-8).
	Share map[string]string
	// DiffMode says what happens to a proposal that no rule of the page covers: ask, accept or terminal (SPEC F-11).
	DiffMode string
	Notify   Notify
	History  History
	// ExtensionIndex is the file that extensions search reads; "" for none.
	ExtensionIndex string
	Tools          Tools
}

// Notify says how a user who is elsewhere learns that something waits for an answer (SPEC F-11).
type Notify struct {
	Seconds  int      // how long it waits first; 0 tells nobody
	Terminal bool     // ring the terminals where agents run
	Desktop  bool     // use the desktop's notifications
	Command  []string // a program of the user's, by its absolute path or a name in PATH, with arguments
}

// Tools bounds each run of an extension's tool (SPEC X-1). Flags may set lower or higher bounds.
type Tools struct {
	Seconds   int   // wall-clock time
	Memory    int64 // bytes, for all its processes together
	Output    int64 // bytes, for both output streams together
	Processes int   // at the same time
	// Pinned names tools (extension.tool) or extensions that are always declared to Gemini CLI individually, whatever
	// their number.
	Pinned []string
	// Reduced allows a tool to run on a machine with less than full isolation, if its permissions can still be
	// enforced.
	Reduced bool
	// UseProxy has a tool's allowed hosts contacted through the user's own proxy (HTTPS_PROXY).
	UseProxy bool
}

// History bounds the record of past proposals (SPEC F-12).
type History struct {
	Enabled bool
	Entries int           // maximum number
	Bytes   int64         // total size of texts
	Age     time.Duration // maximum age
}

// Defaults returns the default settings: every default of the program, in one place.
func Defaults() Settings {
	return Settings{
		LogLevel:    "info",
		OpenBrowser: true,
		Resume:      true,
		Keep:        true,
		DiffMode:    "ask",
		Notify:      Notify{Terminal: true},
		History: History{
			Enabled: true,
			Entries: 100,
			Bytes:   50 << 20,
			Age:     7 * 24 * time.Hour,
		},
		Tools: Tools{Seconds: 60, Memory: 1 << 30, Output: 10 << 20, Processes: 512},
	}
}
