package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// integrityStore is the CLI's extension_integrity.json: for each extension a signed hash of its install metadata. The
// CLI accepts an extension without a record. It refuses to update one whose record does not match.
type integrityStore struct {
	Store     map[string]integrityRecord `json:"store"`
	Signature string                     `json:"signature"`
}

type integrityRecord struct {
	Hash      string `json:"hash"`
	Signature string `json:"signature"`
}

// Where the keychain has the signing key.
const (
	integrityService = "gemini-cli-extension-integrity"
	integrityAccount = "secret-key"
)

func (s *Store) integrityFile() string { return filepath.Join(s.gemini, "extension_integrity.json") }

// fixIntegrity makes an existing record of name match the new metadata, or removes it if the metadata is nil. It
// creates neither a store nor a record: the CLI accepts a missing one. A failure is only a warning.
func (s *Store) fixIntegrity(name string, m *Metadata) {
	file := s.integrityFile()
	data, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var all integrityStore
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		s.warn(fmt.Sprintf("Gemini CLI's record %q cannot be read (%v), and it will refuse to update extensions; deleting the file resets it", file, err))
		return
	}
	record, known := all.Store[name]
	if !known {
		return
	}
	fixed, err := s.resign(&all, name, record, m)
	if err == nil && fixed {
		err = safefile.Write(file, indented(all), &safefile.Options{Mode: 0o600, KeepMode: true})
	}
	if err != nil {
		s.warn(fmt.Sprintf("Gemini CLI keeps a signed record of an earlier install of %q that could not be brought up to date (%v); `gemini extensions update %s` will refuse, `pollux extensions update %s` works", name, err, name, name))
	}
}

// resign changes the store in memory; false if nothing had to change.
func (s *Store) resign(all *integrityStore, name string, old integrityRecord, m *Metadata) (bool, error) {
	key, err := s.integrityKey()
	if err != nil {
		return false, err
	}
	sign := func(text string) string {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))
	}
	content, err := stable(indented(all.Store))
	if err != nil {
		return false, err
	}
	if !hmac.Equal([]byte(sign(content)), []byte(all.Signature)) {
		return false, errors.New("its signature is not by the key that this user has")
	}
	if m == nil {
		delete(all.Store, name)
	} else {
		text, err := stable(indented(m))
		if err != nil {
			return false, err
		}
		hash := hexHash([]byte(text))
		if hash == old.Hash && sign(hash) == old.Signature {
			return false, nil
		}
		all.Store[name] = integrityRecord{Hash: hash, Signature: sign(hash)}
	}
	if content, err = stable(indented(all.Store)); err != nil {
		return false, err
	}
	all.Signature = sign(content)
	return true, nil
}

// integrityKey returns the signing key from where the CLI stores it. It never creates one.
func (s *Store) integrityKey() (string, error) {
	key, err := s.keychain().get(integrityService, integrityAccount)
	if err == nil && key != "" {
		return key, nil
	}
	data, fileErr := safefile.ReadPrivate(filepath.Join(s.gemini, "integrity.key"), 4096)
	if fileErr == nil {
		return strings.TrimSpace(string(data)), nil
	}
	if err == nil {
		err = errors.New("its key is not in the keychain")
	}
	return "", err
}
