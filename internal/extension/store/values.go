package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Value is the current state of one setting of an extension. It never contains a secret's value.
type Value struct {
	Setting manifest.Setting
	Set     bool
	Text    string // "" for a secret
	Scope   Scope  // where the value comes from; "" if there is none
	Place   string // the file or keychain, for people
}

// Values returns the settings of an extension for the working folder. The workspace's value comes before the user's,
// but only in a trusted folder.
func (s *Store) Values(x *Extension) ([]Value, error) {
	var all []Value
	for _, setting := range x.Manifest.Settings {
		v := Value{Setting: setting}
		for _, scope := range []Scope{Workspace, User} {
			if scope == Workspace && (s.workDir == s.home || s.TrustOf(s.workDir) != clisettings.Trusted) {
				continue
			}
			text, set, place, err := s.value(x, setting, scope)
			if err != nil {
				return nil, err
			}
			if set {
				v.Set, v.Scope, v.Place = true, scope, place
				if !setting.Sensitive {
					v.Text = text
				}
				break
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// Secret returns the value of one setting, even a secret, for the program that runs the extension's tools; "" and
// false if there is none.
func (s *Store) Secret(x *Extension, setting manifest.Setting) (string, bool, error) {
	for _, scope := range []Scope{Workspace, User} {
		if scope == Workspace && (s.workDir == s.home || s.TrustOf(s.workDir) != clisettings.Trusted) {
			continue
		}
		text, set, _, err := s.value(x, setting, scope)
		if err != nil || set {
			return text, set, err
		}
	}
	return "", false, nil
}

func (s *Store) value(x *Extension, setting manifest.Setting, scope Scope) (text string, set bool, place string, err error) {
	if setting.Sensitive {
		k := s.keychain()
		text, err = k.get(s.service(x, scope), "__secret__"+setting.EnvVar)
		return text, text != "", k.place(), err
	}
	file := s.envFile(x, scope)
	env, err := readEnv(file, scope)
	text, set = env[setting.EnvVar]
	return text, set, file, err
}

// service returns the CLI's keychain service for an extension's secrets.
func (s *Store) service(x *Extension, scope Scope) string {
	name := "Gemini CLI Extensions " + x.Name + " " + x.ID()
	if scope == Workspace {
		name += " " + s.workDir
	}
	return name
}

// envFile returns the .env in the extension's folder in the extensions folder (also for a link), or the workspace's
// own.
func (s *Store) envFile(x *Extension, scope Scope) string {
	if scope == Workspace {
		return filepath.Join(s.workDir, ".env")
	}
	return filepath.Join(s.folder(x.Name), ".env")
}

var envName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// SetValue sets a setting, or removes it if text is nil, and says where.
func (s *Store) SetValue(ctx context.Context, x *Extension, setting manifest.Setting, scope Scope, text *string) (place string, err error) {
	if scope == Workspace {
		if s.workDir == s.home {
			return "", errors.New("the home folder is no workspace; leave out --scope")
		}
		if s.TrustOf(s.workDir) != clisettings.Trusted {
			return "", fmt.Errorf("%w: the folder %q is not trusted, and Gemini CLI reads no settings there; trust it with /permissions in Gemini CLI", errPolicy, s.workDir)
		}
	}
	if !envName().MatchString(setting.EnvVar) {
		return "", fmt.Errorf("the setting %q names the environment variable %q, which cannot exist; its author must change it", setting.Name, setting.EnvVar)
	}
	if text != nil {
		if err := checkValue(setting, *text); err != nil {
			return "", err
		}
	}
	err = s.locked(ctx, func() error {
		if setting.Sensitive {
			k := s.keychain()
			place = k.place()
			if text == nil || *text == "" {
				return k.remove(s.service(x, scope), "__secret__"+setting.EnvVar)
			}
			return k.set(s.service(x, scope), "__secret__"+setting.EnvVar, *text)
		}
		place = s.envFile(x, scope)
		return s.writeValue(x, setting, scope, text)
	})
	return place, err
}

// MaxValue is the longest value of a setting, in bytes. A program gets it as an environment variable, which Linux
// limits to 128 KiB.
const MaxValue = 64 << 10

// checkValue refuses a value that could not be read back unchanged.
func checkValue(setting manifest.Setting, text string) error {
	switch {
	case len(text) > MaxValue:
		return fmt.Errorf("the value has more than %d KiB, which a setting cannot hold; give the path of a file instead", MaxValue>>10)
	case strings.ContainsRune(text, 0):
		return errors.New("the value has a NUL byte, which an environment variable cannot hold")
	case setting.Sensitive: // the keychain can store line breaks, which keys contain
		return nil
	case strings.ContainsAny(text, "\n\r"):
		return errors.New("the value has a line break, which only a sensitive setting can hold; nothing was set")
	case strings.Contains(text, "'") && strings.Contains(text, `"`) && strings.Contains(text, "`"):
		return errors.New("the value has all three kinds of quotes, of which the file can hold two")
	}
	return nil
}

// writeValue changes one line of an .env. The rest of a workspace's file stays unchanged byte for byte, because it is
// the user's own.
func (s *Store) writeValue(x *Extension, setting manifest.Setting, scope Scope, text *string) error {
	file := s.envFile(x, scope)
	if scope == User {
		env, err := readEnv(file, User)
		if err != nil {
			return err
		}
		delete(env, setting.EnvVar)
		if text != nil && *text != "" {
			env[setting.EnvVar] = *text
		}
		for _, other := range x.Manifest.Settings {
			if other.Sensitive {
				delete(env, other.EnvVar) // a secret does not belong in a file
			}
		}
		return safefile.Write(file, formatEnv(env), nil)
	}
	data, err := readSmall(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if key, _, is := envLine(line); !is || key != setting.EnvVar {
			kept = append(kept, line)
		}
	}
	out := strings.Join(kept, "")
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	if text != nil && *text != "" {
		out += string(formatEnv(map[string]string{setting.EnvVar: *text}))
	}
	return safefile.Write(paths.Real(file), []byte(out), &safefile.Options{Mode: 0o600, KeepMode: true})
}

// readOwnEnv reads the .env in an extension's folder. It follows no link: the CLI copies links as their author made
// them, and such a link could hand out any file of secrets.
func readOwnEnv(file string) ([]byte, error) {
	if info, err := os.Lstat(file); err == nil && info.IsDir() {
		return nil, fs.ErrNotExist // as in the CLI
	}
	return safefile.ReadPrivate(file, maxSmallFile)
}

// readEnv reads an .env as the CLI's library does. A missing file is empty.
func readEnv(file string, scope Scope) (map[string]string, error) {
	read := readSmall
	if scope == User {
		read = readOwnEnv
	}
	env := map[string]string{}
	data, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the settings in %q cannot be read: %w", file, safefile.Cause(err))
	}
	for line := range strings.Lines(string(data)) {
		if key, value, is := envLine(line); is {
			env[key] = value
		}
	}
	return env, nil
}

// envLine parses KEY=value with the quotes and comments of the CLI's library. It does not parse multi-line values,
// which the CLI never writes.
func envLine(line string) (key, value string, is bool) {
	line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
	key, value, is = strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !is || strings.HasPrefix(key, "#") || key == "" || strings.ContainsAny(key, " \t") {
		return "", "", false
	}
	if value != "" && strings.ContainsRune("'\"`", rune(value[0])) {
		if end := strings.LastIndexByte(value[1:], value[0]); end >= 0 {
			quote, inner := value[0], value[1:1+end]
			if quote == '"' {
				inner = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(inner)
			}
			return key, inner, true
		}
	}
	value, _, _ = strings.Cut(value, "#")
	return key, strings.TrimSpace(value), true
}

// formatEnv writes values so that the CLI reads them back. It quotes a value if a blank or # would be lost.
func formatEnv(env map[string]string) []byte {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(env)) {
		value := env[key]
		switch {
		case !strings.ContainsAny(value, " \t#'\"`") && strings.TrimSpace(value) == value:
		case !strings.Contains(value, `'`):
			value = "'" + value + "'"
		case !strings.Contains(value, "`"):
			value = "`" + value + "`"
		default: // SetValue refuses values with all three kinds of quotes
			value = `"` + value + `"`
		}
		fmt.Fprintf(&b, "%s=%s\n", key, value)
	}
	return []byte(b.String())
}
