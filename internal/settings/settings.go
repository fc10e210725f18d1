// Package settings knows the user's configuration file and its defaults, the
// folders that pollux keeps things in, and how it logs.
package settings

import (
	"time"
)

// Settings is everything that a user can set once and for all; a command's flags come after it.
type Settings struct {
	// LogLevel is debug, info, warn or error.
	LogLevel string
	// OpenBrowser lets serve and run open the editor page.
	OpenBrowser bool
	// Resume lets a companion take over the port and token of one that ended less than ten minutes ago (SPEC A-1).
	Resume bool
	// Keep lets a keeper hold the door of connected CLIs open when their editor ends (SPEC L-4); it needs Resume.
	Keep bool
	// AllowWriteFile serves POST /write-file (SPEC T-11).
	AllowWriteFile bool
	// LegacyDiffClosed also sends ide/diffClosed, for CLIs older than ide/diffRejected (SPEC §0).
	LegacyDiffClosed bool
	// ContainerAddress is an IP address of this machine that CLIs in containers reach; "" for none (SPEC T-8).
	ContainerAddress string
	// AdmitOtherUsers lets other users of the machine connect who have a token (SPEC A-5).
	AdmitOtherUsers bool
	// ShareOutside lets files outside the workspace be named to agents (SPEC C-8).
	ShareOutside bool
	// Ignore lists patterns, in .gitignore's form, of files that are never named nor quoted (SPEC C-8).
	Ignore []string
	// DiffMode is what happens to a proposal without a rule of the page's: ask, accept or terminal (SPEC F-11).
	DiffMode string
	History  History
	// ExtensionIndex is the file that extensions search looks into; "" for none.
	ExtensionIndex string
	Tools          Tools
}

// Tools bounds each run of an extension's tool (SPEC X-1); a tool may be given less by a flag, and more.
type Tools struct {
	Seconds   int   // by the clock
	Memory    int64 // bytes, of all its processes together
	Output    int64 // bytes, of both its streams together
	Processes int   // at once
	// Pinned names tools (extension.tool), or extensions, that are declared to Gemini CLI one by one, however many there are.
	Pinned []string
	// Reduced lets a tool run where the machine offers less than full isolation, when its permissions are kept all the same.
	Reduced bool
}

// History bounds what is kept of past proposals (SPEC F-12).
type History struct {
	Enabled bool
	Entries int           // at most so many
	Bytes   int64         // of text in all
	Age     time.Duration // of the oldest
}

// Defaults are the settings of a user who set nothing: every default of the program, in one place.
func Defaults() Settings {
	return Settings{
		LogLevel:    "info",
		OpenBrowser: true,
		Resume:      true,
		Keep:        true,
		DiffMode:    "ask",
		History: History{
			Enabled: true,
			Entries: 100,
			Bytes:   50 << 20,
			Age:     7 * 24 * time.Hour,
		},
		Tools: Tools{Seconds: 60, Memory: 1 << 30, Output: 10 << 20, Processes: 512},
	}
}
