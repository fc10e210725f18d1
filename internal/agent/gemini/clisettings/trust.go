package clisettings

import (
	"encoding/json"
	"path/filepath"
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
// machine's, as System gives them.
func TrustOf(getenv func(string) string, defaults, user, system, dir string) Trust {
	switch {
	case getenv("GEMINI_RESTRICTED_MODE") == "true", getenv("GEMINI_CLI_TRUST_WORKSPACE") == "false":
		return Distrusted
	case getenv("GEMINI_CLI_TRUST_WORKSPACE") == "true":
		return Trusted
	}
	asks := true
	for _, file := range []string{defaults, user, system} { // each outranks those before it
		var s struct {
			Security struct {
				FolderTrust struct {
					Enabled *bool `json:"enabled"`
				} `json:"folderTrust"`
			} `json:"security"`
		}
		if file != "" && decode(file, &s) && s.Security.FolderTrust.Enabled != nil {
			asks = *s.Security.FolderTrust.Enabled
		}
	}
	if !asks {
		return Trusted
	}
	file := getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
	if file == "" {
		file = filepath.Join(filepath.Dir(user), "trustedFolders.json")
	}
	rules := map[string]string{}
	if !decode(file, &rules) {
		return Undecided
	}
	return longest(rules, linked(dir))
}

// longest takes the longest rule that holds the folder.
func longest(rules map[string]string, dir string) Trust {
	best, trust := -1, Undecided
	for rule, level := range rules {
		at := rule
		if level == "TRUST_PARENT" {
			at = filepath.Dir(rule)
		}
		rel, err := filepath.Rel(linked(at), dir)
		if err != nil || !filepath.IsLocal(rel) || len(rule) <= best {
			continue
		}
		switch best = len(rule); level {
		case "TRUST_FOLDER", "TRUST_PARENT":
			trust = Trusted
		case "DO_NOT_TRUST":
			trust = Distrusted
		default:
			trust = Undecided
		}
	}
	return trust
}

// linked follows the links of a path that exists.
func linked(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// decode reads a file of the CLI's into v; false where there is none, or none that the CLI understands.
func decode(path string, v any) bool {
	f, err := open(path)
	return err == nil && !f.missing && json.Unmarshal(plain(f.data), v) == nil
}
