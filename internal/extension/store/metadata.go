package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Metadata is the CLI's .gemini-extension-install.json: where an extension
// came from, as far as the CLI can express it. The order of the fields is the CLI's.
type Metadata struct {
	Source          string `json:"source"`
	Type            string `json:"type"` // git, local, link or github-release
	Ref             string `json:"ref,omitempty"`
	AutoUpdate      bool   `json:"autoUpdate,omitempty"`
	AllowPreRelease bool   `json:"allowPreRelease,omitempty"`
	ReleaseTag      string `json:"releaseTag,omitempty"`
}

// metadataFor says a source in the CLI's words. An archive becomes a local
// source that the CLI finds not updatable, and leaves alone.
func metadataFor(f source.Fetched, autoUpdate bool) Metadata {
	m := Metadata{
		Source: f.Source.Location, Type: string(f.Source.Kind), Ref: f.Source.Ref,
		AutoUpdate: autoUpdate, AllowPreRelease: f.Source.PreRelease, ReleaseTag: f.Tag,
	}
	if f.Source.Kind == source.Archive {
		m.Type = string(source.Local)
	}
	return m
}

// maxSmallFile bounds each of the CLI's own files that are read here, in bytes.
const maxSmallFile = 4 << 20

// readMetadata reads an extension folder's metadata; nil without a usable file, as the CLI has it.
func readMetadata(dir string) *Metadata {
	data, err := readSmall(filepath.Join(dir, manifest.InstallFileName))
	if err != nil {
		return nil
	}
	var m Metadata
	if json.Unmarshal(data, &m) != nil || m.Source == "" {
		return nil
	}
	return &m
}

// readSmall reads a regular file of the CLI's or the user's; links are
// followed (dotfiles are often links), pipes are not waited for.
func readSmall(path string) ([]byte, error) { return readAtMost(path, maxSmallFile) }

// maxOwnFile bounds what pollux itself wrote, lists of all files of an extension among it, in bytes.
const maxOwnFile = 64 << 20

func readAtMost(path string, bound int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > bound {
		return nil, fmt.Errorf("%q is not a file of at most %d bytes", path, bound)
	}
	return os.ReadFile(path)
}

func (m Metadata) write(dir string) error {
	return safefile.Write(filepath.Join(dir, manifest.InstallFileName), indented(m), &safefile.Options{Mode: 0o644})
}

// indented is v as the CLI writes JSON: two spaces, nothing escaped for HTML, no newline at the end.
func indented(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("store: a plain value did not encode: " + err.Error()) // only our own types get here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// id is the extension's id in the CLI: a hash of what its source is.
func (m *Metadata) id(name string) string {
	if m == nil {
		return hexHash([]byte(name))
	}
	if m.Type == string(source.Git) || m.Type == string(source.Release) {
		if repo := githubRepo(m.Source); repo != "" {
			return hexHash([]byte("https://github.com/" + repo))
		}
	}
	return hexHash([]byte(m.Source))
}

// githubRepo is "owner/repo" as the CLI finds it in an address, "" for other hosts.
func githubRepo(address string) string {
	s, err := source.Parse(address, string(filepath.Separator), source.Wish{})
	if err != nil {
		return ""
	}
	return s.GitHub
}

// stable is JSON as the CLI signs it: keys sorted, no blanks, JavaScript's escapes.
func stable(data []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	var b strings.Builder
	writeStable(&b, v)
	return b.String(), nil
}

func writeStable(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(jsString(k))
			b.WriteByte(':')
			writeStable(b, v[k])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeStable(b, e)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(jsString(v))
	case json.Number:
		b.WriteString(v.String())
	case bool:
		b.WriteString(strconv.FormatBool(v))
	default:
		b.WriteString("null")
	}
}

// jsString is JSON.stringify of a string: unlike Go's, it leaves the two line separators as they are.
func jsString(s string) string {
	text := string(indented(s))
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(text)
}
