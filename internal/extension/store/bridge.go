package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// BridgeName is the name of the extension through which Gemini CLI starts pollux (SPEC P-3).
const BridgeName = manifest.Own

// A bridgeRecord is what pollux stores about its bridge outside the bridge's folder.
type bridgeRecord struct {
	// Server is the name of the bridge's MCP server.
	Server string `json:"server"`
}

func (s *Store) bridgeFile() string { return s.own("bridge.json") }

// BridgeServer returns the name of the MCP server in this user's bridge; "" before NameBridge named it.
func (s *Store) BridgeServer() string {
	data, err := readSmall(s.bridgeFile())
	var r bridgeRecord
	if err != nil || json.Unmarshal(data, &r) != nil || !isServer(r.Server) {
		return ""
	}
	return r.Server
}

// serverLength is the length of the names that NameBridge gives. serverLetters are the letters of their random end:
// 30 bits.
const (
	serverLength  = len(BridgeName) + 1 + 6
	serverLetters = "abcdefghijklmnopqrstuvwxyz234567"
)

// isServer says whether NameBridge could have given a name.
func isServer(name string) bool {
	end, ok := strings.CutPrefix(name, BridgeName+"-")
	return ok && len(name) == serverLength && strings.Trim(end, serverLetters) == ""
}

// NameBridge returns BridgeServer, and first names the server if needed. The name cannot be guessed: of two servers
// with one name Gemini CLI takes one, a workspace's settings could replace it, and rules that allow its tools refer
// to its name. The name stays until RemoveBridge, so that those rules stay valid.
func (s *Store) NameBridge(ctx context.Context) (server string, err error) {
	err = s.locked(ctx, func() error {
		if server = s.BridgeServer(); server != "" {
			return nil
		}
		end := make([]byte, serverLength-len(BridgeName)-1)
		_, _ = rand.Read(end) // it never fails
		for i, b := range end {
			end[i] = serverLetters[int(b)%len(serverLetters)]
		}
		server = BridgeName + "-" + string(end)
		return safefile.Write(s.bridgeFile(), indented(bridgeRecord{server}), nil)
	})
	return server, err
}

// Bridge says whether PlaceBridge wrote this extension. Its source is its own folder, so that an update by the CLI
// finds nothing to do.
func (x *Extension) Bridge() bool {
	return filepath.Base(x.Folder) == BridgeName && x.Metadata.bridges(x.Folder)
}

// IsBridge says whether a folder is the bridge that PlaceBridge wrote.
func (s *Store) IsBridge(dir string) bool {
	folder := s.folder(BridgeName)
	return paths.Real(dir) == paths.Real(folder) && readMetadata(folder).bridges(folder)
}

// bridges says whether this is the metadata of a bridge in a folder.
func (m *Metadata) bridges(folder string) bool {
	return m != nil && m.Type == string(source.Local) && m.Source == folder
}

// PlaceBridge writes the bridge: an extension with these files, manifest included, named with slashes. In an existing
// bridge it replaces each file that differs as a whole, and removes files that are nil. It says whether anything
// changed. If another extension has the name, the error is ErrExists.
func (s *Store) PlaceBridge(ctx context.Context, files map[string][]byte) (changed bool, err error) {
	folder := s.folder(BridgeName)
	meta := Metadata{Source: folder, Type: string(source.Local)}
	if err := s.readPolicy().check(&meta, s.workDir); err != nil {
		return false, err
	}
	files = maps.Clone(files)
	files[manifest.InstallFileName] = indented(meta)
	err = s.locked(ctx, func() error {
		if there := readMetadata(folder); there.bridges(folder) {
			changed, err = writeChanged(folder, files)
			return err
		}
		changed = true
		return s.newBridge(folder, files)
	})
	return changed && err == nil, err
}

// newBridge makes the folder in one step. The lock is held.
func (s *Store) newBridge(folder string, files map[string][]byte) error {
	if err := s.checkFree(BridgeName); err != nil {
		return fmt.Errorf("there is an extension called %q that is not pollux's bridge: %w", BridgeName, err)
	}
	st, err := s.newStaging()
	if err != nil {
		return err
	}
	defer st.close()
	fresh := st.path("new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	if _, err := writeChanged(fresh, files); err != nil {
		return err
	}
	if err := os.Rename(fresh, folder); err != nil {
		return fmt.Errorf("placing %q: %w", folder, safefile.Cause(err))
	}
	return syncDir(s.Dir())
}

// writeChanged writes the files whose content differs. The manifest comes last, so that the files it names exist.
func writeChanged(dir string, files map[string][]byte) (changed bool, err error) {
	names := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == manifest.FileName:
			return 1
		case b == manifest.FileName:
			return -1
		}
		return 0
	})
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if files[name] == nil {
			gone, err := removeUpTo(dir, path)
			if err != nil {
				return changed, err
			}
			changed = changed || gone
			continue
		}
		old, err := readSmall(path)
		if err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return changed, err
		}
		err = os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = safefile.Write(path, files[name], &safefile.Options{Mode: 0o644})
		}
		if err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}

// removeUpTo removes a file below dir, and then parent folders that are empty. It says whether the file existed.
func removeUpTo(dir, path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for above := filepath.Dir(path); above != dir && os.Remove(above) == nil; {
		above = filepath.Dir(above)
	}
	return true, nil
}

// BridgeFiles returns the names of the bridge's files below one of its folders, sorted, with slashes.
func (s *Store) BridgeFiles(below string) []string {
	folder := s.folder(BridgeName)
	if !readMetadata(folder).bridges(folder) {
		return nil
	}
	var names []string
	_ = filepath.WalkDir(filepath.Join(folder, below), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if rel, err := filepath.Rel(folder, path); err == nil {
				names = append(names, filepath.ToSlash(rel))
			}
		}
		return nil // unreadable files count as missing
	})
	return names
}

// RemoveBridge removes the bridge with its rules and records; false if there is none.
func (s *Store) RemoveBridge(ctx context.Context) (bool, error) {
	x, err := s.Get(s.folder(BridgeName))
	if errors.As(err, new(*NotFoundError)) || err == nil && !x.Bridge() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.Uninstall(ctx, x); err != nil {
		return true, err
	}
	if err := os.Remove(s.bridgeFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	s.tidy()
	return true, nil
}

// tidy removes the folders that only the bridge needed, if they are empty except for the lock. It removes the lock
// while holding it, so that a waiting process notices.
func (s *Store) tidy() {
	if os.Remove(s.Dir()) != nil {
		return // other extensions, or other files
	}
	for _, dir := range []string{s.own("staging"), s.own("records")} {
		_ = os.Remove(dir)
	}
	if entries, err := os.ReadDir(s.own()); err != nil || len(entries) != 1 || entries[0].Name() != "lock" {
		return
	}
	f, err := os.OpenFile(s.own("lock"), os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	ok, err := safefile.TryLock(f)
	if err == nil && ok {
		_ = os.Remove(f.Name()) // fails on Windows, where an open file cannot be removed
	}
	f.Close()
	_ = os.Remove(s.own())
	_ = os.Remove(s.gemini)
}

// ReadBridge returns a file of the bridge, or fs.ErrNotExist if there is no bridge or no such file.
func (s *Store) ReadBridge(name string) ([]byte, error) {
	folder := s.folder(BridgeName)
	if !readMetadata(folder).bridges(folder) {
		return nil, fs.ErrNotExist
	}
	return readSmall(filepath.Join(folder, filepath.FromSlash(name)))
}
