package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Legacy is what the bridge's server was called before each user's got a name of its own. Any server can have this
// name.
const Legacy = store.BridgeName

// policyDir holds the user's rules for the CLI's policy engine; Headless writes policyFile.
func policyDir(s *store.Store) string  { return filepath.Join(filepath.Dir(s.Dir()), "policies") }
func policyFile(s *store.Store) string { return filepath.Join(policyDir(s), "pollux.toml") }

// policy lets sessions without a terminal call a server's tools. On a terminal the CLI still asks. Without the rule,
// the CLI hides every MCP server's tools from a session without a terminal.
func policy(server string) string {
	return `# Written by pollux extensions bridge install --headless; --no-headless removes it.
# Gemini CLI without a terminal (gemini -p) may call every tool that pollux
# offers without asking. pollux itself offers only tools of extensions that you
# agreed to, and runs each in a sandbox with its declared permissions.
[[rule]]
mcpName = "` + server + `"
toolName = "*"
decision = "allow"
priority = 100
interactive = false
`
}

// ruleOf returns the server that Headless's rule allows; "" if the file is not that rule.
func ruleOf(path string) string {
	data, err := readRules(path)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), `mcpName = "`)
	server, _, _ := strings.Cut(rest, `"`)
	if server == "" || string(data) != policy(server) {
		return ""
	}
	return server
}

// CanHeadless says whether Headless may write its rule. It never replaces a file of the user's.
func CanHeadless(s *store.Store) error {
	path := policyFile(s)
	if _, err := os.Lstat(path); err == nil && ruleOf(path) == "" {
		return fmt.Errorf("%q is not as pollux wrote it; remove it and try again, or write the rule yourself", path)
	}
	return nil
}

// Headless allows or forbids the bridge's tools in sessions without a terminal. It says whether anything changed. The
// rule names this user's bridge server, which gets its name now if it has none.
func Headless(ctx context.Context, s *store.Store, on bool) (bool, error) {
	path := policyFile(s)
	now := ruleOf(path)
	if !on {
		if now == "" { // another file belongs to the user
			return false, nil
		}
		if err := os.Remove(path); err != nil {
			return false, err
		}
		_ = os.Remove(filepath.Dir(path)) // fails unless it is empty
		return true, nil
	}
	server, err := s.NameBridge(ctx)
	if err != nil || now == server {
		return false, err
	}
	if err := CanHeadless(s); err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, safefile.Write(path, []byte(policy(server)), nil)
}

// renewRule makes rules for an old server name of the bridge name this server: Headless's rule, and the rules that
// the CLI saved for Legacy when the user always allowed a tool. It says whether anything changed.
func renewRule(s *store.Store, server string) (changed bool, err error) {
	if old := ruleOf(policyFile(s)); old != "" && old != server {
		if err := safefile.Write(policyFile(s), []byte(policy(server)), nil); err != nil {
			return false, err
		}
		changed = true
	}
	path := filepath.Join(policyDir(s), "auto-saved.toml")
	data, err := readRules(path)
	if err != nil || data == nil {
		return changed, err
	}
	next := legacyRule().ReplaceAll(data, []byte(`${1}"`+server+`"`))
	if bytes.Equal(next, data) {
		return changed, nil
	}
	return true, safefile.Write(path, next, &safefile.Options{KeepMode: true})
}

// legacyRule matches a line of a rule that names Legacy.
var legacyRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^([ \t]*mcpName[ \t]*=[ \t]*)["']` + Legacy + `["'][ \t]*\r?$`)
})

// maxRules bounds the size of a rules file, in bytes.
const maxRules = 4 << 20

// readRules reads a rules file; nil if there is none. It leaves links, other special files and files above maxRules
// to the user.
func readRules(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() > maxRules) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// legacyRules lists the rules files that name Legacy.
func legacyRules(s *store.Store) []string {
	files, _ := filepath.Glob(filepath.Join(policyDir(s), "*.toml"))
	var out []string
	for _, file := range files {
		if data, err := readRules(file); err == nil && legacyRule().Match(data) {
			out = append(out, file)
		}
	}
	return out
}
