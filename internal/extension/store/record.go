package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Record is what pollux stores about an extension that it installed, beyond the CLI's metadata. It lies outside the
// extension, so that neither the CLI nor the extension's author writes to it.
type Record struct {
	Name      string         `json:"name"`
	Version   string         `json:"version"`
	Fetched   source.Fetched `json:"fetched"`
	Metadata  Metadata       `json:"metadata"` // as written; if the folder's metadata differs, another program changed it
	Hash      string         `json:"hash"`     // of the installed content; "" for a link
	Installed time.Time      `json:"installed"`
}

func (s *Store) recordFile(name string) string { return s.own("records", name+".json") }

// readRecord returns nil if pollux did not install name.
func (s *Store) readRecord(name string) *Record {
	data, err := readSmall(s.recordFile(name))
	if err != nil {
		return nil
	}
	var r Record
	if json.Unmarshal(data, &r) != nil || r.Name != name {
		return nil
	}
	return &r
}

// treeFile has the hashes of an extension's files. It is separate from the record, because there may be thousands and
// only Verify reads them.
func (s *Store) treeFile(name string) string { return s.own("records", name+".tree.json") }

func (s *Store) writeRecord(r *Record) error {
	if err := safefile.PrivateDir(s.own("records")); err != nil {
		return err
	}
	return safefile.Write(s.recordFile(r.Name), indented(r), nil)
}

func (s *Store) readTree(name string) *manifest.Tree {
	data, err := readAtMost(s.treeFile(name), maxOwnFile)
	if err != nil {
		return nil
	}
	var t manifest.Tree
	if json.Unmarshal(data, &t) != nil {
		return nil
	}
	return &t
}

// Verification says what changed in an extension since pollux installed it.
type Verification struct {
	// Recorded is the content hash at the install; "" if pollux did not install this state.
	Recorded string `json:"recorded,omitempty"`
	// Current is the content hash now.
	Current string `json:"current"`
	// Added, Removed and Changed are slash-separated paths, sorted.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// ByOther says that another program (Gemini CLI) installed or updated it since.
	ByOther bool `json:"byOther,omitempty"`
}

// Same says whether the content is unchanged since the install.
func (v Verification) Same() bool { return v.Recorded != "" && v.Recorded == v.Current }

// Verify hashes the extension's content and compares it with the record.
func (s *Store) Verify(name string) (Verification, error) {
	x, err := s.Get(name)
	if err != nil {
		return Verification{}, err
	}
	tree, err := manifest.ReadTree(x.Dir)
	if err != nil {
		return Verification{}, fmt.Errorf("reading %q: %w", x.Dir, err)
	}
	v := Verification{Current: tree.Hash()}
	if x.Record == nil || x.Record.Hash == "" {
		return v, nil
	}
	v.Recorded = x.Record.Hash
	v.ByOther = x.foreign()
	if old := s.readTree(x.Name); old != nil && old.Hash() == v.Recorded {
		d := tree.Since(old)
		v.Added, v.Removed, v.Changed = d.Added, d.Removed, d.Changed
	}
	return v, nil
}

// foreign says whether another program replaced what the record describes: the metadata differs, or the repository is
// at another commit.
func (x *Extension) foreign() bool {
	if x.Record == nil || x.Metadata == nil || x.Record.Metadata != *x.Metadata {
		return true
	}
	head := source.HeadCommit(x.Folder)
	return x.Record.Fetched.Commit != "" && head != "" && head != x.Record.Fetched.Commit
}

func hexHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// dropRecord removes what pollux stores about name.
func (s *Store) dropRecord(name string) {
	for _, file := range []string{s.recordFile(name), s.treeFile(name)} {
		if err := os.Remove(file); err != nil && exists(file) {
			s.warn(fmt.Sprintf("the record %q could not be removed: %v", file, safefile.Cause(err)))
		}
	}
}
