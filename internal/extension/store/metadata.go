package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Metadata is the CLI's .gemini-extension-install.json: an extension's origin, as far as the CLI can express it. The
// fields are in the CLI's order.
type Metadata struct {
	Source          string `json:"source"`
	Type            string `json:"type"` // git, local, link or github-release
	Ref             string `json:"ref,omitempty"`
	AutoUpdate      bool   `json:"autoUpdate,omitempty"`
	AllowPreRelease bool   `json:"allowPreRelease,omitempty"`
	ReleaseTag      string `json:"releaseTag,omitempty"`
}

// metadataFor returns a source in the CLI's terms. An archive becomes a local source that the CLI cannot update and
// so leaves alone.
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

// maxSmallFile bounds the size of each of the CLI's files, in bytes.
const maxSmallFile = 4 << 20

// readMetadata reads an extension folder's metadata; nil without a usable file, as in the CLI.
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

// readSmall reads a regular file of the CLI's or the user's. It follows links, because dotfiles often are links. It
// does not block on pipes.
func readSmall(path string) ([]byte, error) { return readAtMost(path, maxSmallFile) }

// maxOwnFile bounds the size of files that pollux itself wrote, including lists of all files of an extension, in
// bytes.
const maxOwnFile = 64 << 20

func readAtMost(path string, bound int64) ([]byte, error) {
	usable := func(info os.FileInfo) bool { return info.Mode().IsRegular() && info.Size() <= bound }
	before, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	refused := fmt.Errorf("%q is not a file of at most %d bytes", path, bound)
	if !usable(before) { // a device might do something when it is opened
		return nil, refused
	}
	f, err := os.OpenFile(path, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !usable(info) { // it was replaced meanwhile
		return nil, refused
	}
	data := bytes.NewBuffer(make([]byte, 0, before.Size()+bytes.MinRead)) // reading the end takes room too
	if _, err := data.ReadFrom(io.LimitReader(f, bound+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > bound {
		return nil, refused
	}
	return data.Bytes(), nil
}

func (m Metadata) write(dir string) error {
	return safefile.Write(filepath.Join(dir, manifest.InstallFileName), indented(m), &safefile.Options{Mode: 0o644})
}

// indented returns v as the CLI writes JSON: two spaces, no HTML escapes, no final newline.
func indented(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic("store: a plain value did not encode: " + err.Error()) // only own types get here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// id returns the CLI's id of the extension: a hash of its source.
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

// githubRepo returns "owner/repo" as the CLI finds it in an address; "" for other hosts.
func githubRepo(address string) string {
	s, err := source.Parse(address, string(filepath.Separator), source.Wish{})
	if err != nil {
		return ""
	}
	return s.GitHub
}

// stable returns JSON as the CLI signs it: sorted keys, no whitespace, JavaScript's escapes.
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

// jsString is JavaScript's JSON.stringify of a string. Unlike Go's, it does not escape the two Unicode line
// separators.
func jsString(s string) string {
	text := string(indented(s))
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(text)
}
