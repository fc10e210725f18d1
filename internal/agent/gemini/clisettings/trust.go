package clisettings

import (
	"fmt"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/paths"
)

// A Trust is the CLI's trust in a folder. The settings of a folder that it does not trust do not count.
type Trust int

// The CLI's answers. An Undecided folder is not trusted: the CLI asks.
const (
	Undecided Trust = iota
	Trusted
	Distrusted
)

// TrustOf returns the trust of a CLI with these variables in dir. user is its user's settings file; defaults and system are the
// machine's, as System returns them. An error is FolderTrust's, with Undecided.
func TrustOf(getenv func(string) string, defaults, user, system, dir string) (Trust, error) {
	asks := true
	for _, file := range []string{defaults, user, system} { // each outranks the ones before it
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

// FolderTrust is the CLI's rule itself. Its variables come first; then asks, which says whether the settings make it ask at
// all; then the longest entry that holds dir among the trusted folders. They are in file unless a variable names another.
// An error is about that file: a CLI that needs it does not start.
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

// A level is the value of one entry of the trusted folders.
type level string

// The levels; the CLI accepts no other.
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
