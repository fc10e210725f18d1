package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// maxConfig bounds the configuration file, in bytes.
const maxConfig = 1 << 20

// A Problem is a mistake in the configuration file, with its place.
type Problem struct {
	File         string
	Line, Column int // 1-based; the column counts bytes
	Text         string
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Load reads the configuration file over the defaults; a missing file is no error. Comments and trailing commas are
// allowed. An unusable value is an error (a *Problem); unknown keys are returned as warnings.
func Load(path string) (Settings, []*Problem, error) {
	s := Defaults()
	data, err := readConfig(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	if err != nil {
		return s, nil, err
	}
	return parse(path, data)
}

// readConfig follows links, because people keep their configuration elsewhere, but does not block on a pipe.
func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fs.ErrNotExist
		}
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the configuration %q is not a file; move it away or put a file there", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(data) > maxConfig {
		return nil, fmt.Errorf("the configuration %q has more than %d bytes; is it the right file?", path, maxConfig)
	}
	return data, nil
}

func unreadable(path string, err error) error {
	return fmt.Errorf("the configuration %q cannot be read (%v); check its permissions, or move it away to use the defaults", path, safefile.Cause(err))
}

// A field is one key of the file: its target and its allowed values.
type field struct {
	key    string // dotted inside an object
	target any    // a pointer, for encoding/json
	expect string // for a message: "true or false"
	check  func() error
}

// fields returns every key, bound to the settings s.
func fields(s *Settings, days *float64) []field {
	const yesNo = "true or false"
	return []field{
		{"logLevel", &s.LogLevel, `"debug", "info", "warn" or "error"`, func() error { return oneOf(s.LogLevel, "debug", "info", "warn", "error") }},
		{"openBrowser", &s.OpenBrowser, yesNo, nil},
		{"resume", &s.Resume, yesNo, nil},
		{"keep", &s.Keep, yesNo, nil},
		{"allowWriteFile", &s.AllowWriteFile, yesNo, nil},
		{"legacyDiffClosed", &s.LegacyDiffClosed, yesNo, nil},
		{"containerAddress", &s.ContainerAddress, `an IP address of this machine, such as "172.17.0.1"`, func() error { return CheckContainerAddress(s.ContainerAddress) }},
		{"admitOtherUsers", &s.AdmitOtherUsers, yesNo, nil},
		{"shareOutside", &s.ShareOutside, yesNo, nil},
		{"ignore", &s.Ignore, `a list of patterns, such as ["secrets/", "*.pem"]`, nil},
		{"share", &s.Share, `an object of agents with "always", "ask" or "never", such as {"*": "ask", "claude": "never"}`, func() error {
			for _, mode := range s.Share {
				if err := oneOf(mode, "always", "ask", "never"); err != nil {
					return err
				}
			}
			return nil
		}},
		{"diffMode", &s.DiffMode, `"ask", "accept" or "terminal"`, func() error { return oneOf(s.DiffMode, "ask", "accept", "terminal") }},
		{"notify.seconds", &s.Notify.Seconds, "a number of seconds from 0 (never) to 86400", func() error { return within(float64(s.Notify.Seconds), 0, 86400) }},
		{"notify.terminal", &s.Notify.Terminal, yesNo, nil},
		{"notify.desktop", &s.Notify.Desktop, yesNo, nil},
		{"notify.command", &s.Notify.Command, `a list of a program, by its absolute path or a name in PATH, and its arguments, such as ["say", "pollux waits"]`, func() error { return checkCommand(s.Notify.Command) }},
		{"extensionIndex", &s.ExtensionIndex, "the path of an index file", nil},
		{"tools.seconds", &s.Tools.Seconds, "a number of seconds from 1 to 86400", func() error { return within(float64(s.Tools.Seconds), 1, 86400) }},
		{"tools.memory", &s.Tools.Memory, "a number of bytes from 16777216", func() error { return within(float64(s.Tools.Memory), 16<<20, 1e15) }},
		{"tools.output", &s.Tools.Output, "a number of bytes from 1024 to 1000000000", func() error { return within(float64(s.Tools.Output), 1024, 1e9) }},
		{"tools.pinned", &s.Tools.Pinned, "a list of names, as in [\"code-analyzer\", \"code-analyzer.lintFile\"]", nil},
		{"tools.processes", &s.Tools.Processes, "a number from 301 to 100000", func() error { return within(float64(s.Tools.Processes), 301, 100000) }},
		{"tools.reduced", &s.Tools.Reduced, yesNo, nil},
		{"tools.useProxy", &s.Tools.UseProxy, yesNo, nil},
		{"history.enabled", &s.History.Enabled, yesNo, nil},
		{"history.entries", &s.History.Entries, "a number from 1 to 10000", func() error { return within(float64(s.History.Entries), 1, 10000) }},
		{"history.bytes", &s.History.Bytes, "a number of bytes from 1 to 10000000000", func() error { return within(float64(s.History.Bytes), 1, 1e10) }},
		{"history.days", days, "a number of days above 0, at most 3650", func() error {
			s.History.Age = time.Duration(*days * float64(24*time.Hour))
			return within(*days, 1e-6, 3650)
		}},
	}
}

var errValue = errors.New("value not allowed")

func oneOf(v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return errValue
	}
	return nil
}

// checkCommand refuses a program that a workspace could bring: what a relative path means depends on the folder.
func checkCommand(c []string) error {
	if len(c) > 0 && (c[0] == "" || filepath.Base(c[0]) != c[0] && !filepath.IsAbs(c[0])) {
		return errValue
	}
	return nil
}

func within(v, low, high float64) error {
	if v < low || v > high {
		return errValue
	}
	return nil
}

// CheckContainerAddress returns an error unless CLIs in containers may be served on a (SPEC T-8): one IP address of
// this machine, never all of them.
func CheckContainerAddress(a string) error {
	if a == "" {
		return nil
	}
	ip, err := netip.ParseAddr(a)
	if err != nil {
		return fmt.Errorf("%q is not an IP address; name that of the container bridge, such as 172.17.0.1", a)
	}
	if ip.IsUnspecified() || ip.IsMulticast() || ip.Unmap().IsUnspecified() {
		return fmt.Errorf("%q would open the companion to the whole network; name the address of the container bridge alone, such as 172.17.0.1", a)
	}
	return nil
}

// A reader reads one configuration file.
type reader struct {
	file     string
	data     []byte
	fields   []field
	warnings []*Problem
}

func parse(file string, data []byte) (Settings, []*Problem, error) {
	s, days := Defaults(), 0.0
	r := &reader{file: file, data: data, fields: fields(&s, &days)}
	root, err := hujson.Parse(data)
	if err != nil {
		return Defaults(), nil, r.syntax(err)
	}
	obj, ok := root.Value.(*hujson.Object)
	if !ok {
		return Defaults(), nil, r.at(root.StartOffset, `the file must be one object: { "key": value, … }`)
	}
	if err := r.object("", obj); err != nil {
		return Defaults(), nil, err
	}
	return s, r.warnings, nil
}

func (r *reader) object(prefix string, obj *hujson.Object) error {
	for i := range obj.Members {
		m := &obj.Members[i]
		name, _ := m.Name.Value.(hujson.Literal)
		key := prefix + name.String()
		if j := slices.IndexFunc(r.fields, func(f field) bool { return f.key == key }); j >= 0 {
			if err := r.set(r.fields[j], &m.Value); err != nil {
				return err
			}
			continue
		}
		inner, isObject := m.Value.Value.(*hujson.Object)
		isPrefix := slices.ContainsFunc(r.fields, func(f field) bool { return strings.HasPrefix(f.key, key+".") })
		switch {
		case isPrefix && isObject:
			if err := r.object(key+".", inner); err != nil {
				return err
			}
		case isPrefix:
			return r.at(m.Value.StartOffset, fmt.Sprintf("%q must be an object: { … }", key))
		default:
			r.warnings = append(r.warnings, r.at(m.Name.StartOffset, fmt.Sprintf("pollux does not know the key %q and ignores it%s", key, r.similar(key))))
		}
	}
	return nil
}

func (r *reader) set(f field, v *hujson.Value) error {
	std := v.Clone()
	std.Standardize() // comments within a list
	err := json.Unmarshal(std.Pack(), f.target)
	if lit, ok := v.Value.(hujson.Literal); ok && lit.Kind() == 'n' {
		err = errValue // encoding/json accepts null for any type
	}
	if err == nil && f.check != nil {
		err = f.check()
	}
	if err != nil {
		return r.at(v.StartOffset, fmt.Sprintf("%q must be %s", f.key, f.expect))
	}
	return nil
}

// similar guesses the intended key.
func (r *reader) similar(key string) string {
	for _, f := range r.fields {
		if strings.EqualFold(f.key, key) || strings.EqualFold(last(f.key), last(key)) {
			return fmt.Sprintf("; did you mean %q?", f.key)
		}
	}
	return ""
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// at makes a Problem for a byte offset.
func (r *reader) at(offset int, text string) *Problem {
	before := string(r.data[:min(offset, len(r.data))])
	return &Problem{
		File:   r.file,
		Line:   strings.Count(before, "\n") + 1,
		Column: len(before) - strings.LastIndexByte(before, '\n'),
		Text:   text,
	}
}

// syntax extracts line and column from the beginning of hujson's message.
func (r *reader) syntax(err error) error {
	p := &Problem{File: r.file, Line: 1, Column: 1, Text: strings.TrimPrefix(err.Error(), "hujson: ")}
	if n, _ := fmt.Sscanf(p.Text, "line %d, column %d: ", &p.Line, &p.Column); n == 2 {
		_, p.Text, _ = strings.Cut(p.Text, ": ")
	}
	p.Text += "; correct it, or move the file away to use the defaults"
	return p
}
