package clisettings

import (
	"fmt"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A Trust is what the CLI makes of a folder before it starts there. The settings of a folder that it does not trust do
// not count.
type Trust int

// What the CLI may make of a folder. One that is Undecided is not trusted: the CLI asks.
const (
	Undecided Trust = iota
	Trusted
	Distrusted
)

// TrustOf is what a CLI with these variables makes of dir. user are its user's settings, defaults and system the
// machine's, as System gives them. With an error, which is FolderTrust's, it is Undecided.
func TrustOf(getenv func(string) string, defaults, user, system, dir string) (Trust, error) {
	asks := true
	for _, file := range []string{defaults, user, system} { // each outranks those before it
		var s struct {
			Security struct {
				FolderTrust struct {
					Enabled *bool `json:"enabled"`
				} `json:"folderTrust"`
			} `json:"security"`
		}
		if file != "" && Program.Decode(file, &s) == nil && s.Security.FolderTrust.Enabled != nil {
			asks = *s.Security.FolderTrust.Enabled
		}
	}
	return FolderTrust(getenv, asks, filepath.Join(filepath.Dir(user), "trustedFolders.json"), dir)
}

// FolderTrust is the CLI's rule itself: its variables first; then asks, which says whether its settings have it ask at
// all; then the longest entry that holds dir in its trusted folders, which are in file unless a variable names another.
// An error is about that file: a CLI that has to read it does not start then.
func FolderTrust(getenv func(string) string, asks bool, file, dir string) (Trust, error) {
	switch {
	case getenv("GEMINI_RESTRICTED_MODE") == "true", getenv("GEMINI_CLI_TRUST_WORKSPACE") == "false":
		return Distrusted, nil
	case getenv("GEMINI_CLI_TRUST_WORKSPACE") == "true", !asks:
		return Trusted, nil
	}
	if other := getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH"); other != "" {
		file = other
	}
	rules := map[string]level{}
	if err := Program.Decode(file, &rules); err != nil {
		return Undecided, fmt.Errorf("the trusted folders in %q cannot be used: %w", file, err)
	}
	return longest(rules, paths.Real(dir)), nil
}

// A level is what one entry of the trusted folders says.
type level string

// The levels; the CLI takes no other.
const (
	trustFolder level = "TRUST_FOLDER"
	trustParent level = "TRUST_PARENT"
	doNotTrust  level = "DO_NOT_TRUST"
)

// UnmarshalJSON refuses what the CLI refuses, null included.
func (l *level) UnmarshalJSON(data []byte) error {
	for _, known := range []level{trustFolder, trustParent, doNotTrust} {
		if string(data) == `"`+string(known)+`"` {
			*l = known
			return nil
		}
	}
	return fmt.Errorf("%.40s is no level of trust; write %q, %q or %q", data, trustFolder, trustParent, doNotTrust)
}

// longest takes the longest rule that holds the folder.
func longest(rules map[string]level, dir string) Trust {
	best, trust := -1, Undecided
	for rule, says := range rules {
		at := rule
		if says == trustParent {
			at = filepath.Dir(rule)
		}
		if !paths.Within(paths.Real(at), dir) || len(rule) <= best {
			continue
		}
		best, trust = len(rule), Trusted
		if says == doNotTrust {
			trust = Distrusted
		}
	}
	return trust
}
