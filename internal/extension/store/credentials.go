package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/scrypt"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A keychain stores secrets by service and account. A missing secret is "" without an error.
type keychain interface {
	get(service, account string) (string, error)
	set(service, account, secret string) error
	remove(service, account string) error
	// place names its location, for people.
	place() string
}

// keychain returns the keychain that the CLI uses: the system's if it works; otherwise, or with
// GEMINI_FORCE_FILE_STORAGE=true, the CLI's encrypted file. It searches only once.
func (s *Store) keychain() keychain {
	s.findKeys.Do(func() {
		if os.Getenv("GEMINI_FORCE_FILE_STORAGE") != "true" {
			s.keys = s.systemKeychain()
		}
		if s.keys == nil {
			s.keys = &fileKeychain{path: filepath.Join(s.gemini, "gemini-credentials.json")}
		}
	})
	return s.keys
}

// fileKeychain is the CLI's gemini-credentials.json. Its key derives from the names of the machine and the user. So
// it protects secrets in backups and from a glance, but not from the user's programs.
type fileKeychain struct {
	path string

	once   sync.Once // deriving the key takes a tenth of a second
	key    []byte
	keyErr error
}

func (k *fileKeychain) place() string { return "Gemini CLI's encrypted file " + k.path }

// credentials is the decrypted file: service → account → secret.
type credentials map[string]map[string]string

func (k *fileKeychain) get(service, account string) (string, error) {
	all, err := k.read()
	return all[service][account], err
}

func (k *fileKeychain) set(service, account, secret string) error {
	all, err := k.read()
	if err != nil {
		return err
	}
	if all[service] == nil {
		all[service] = map[string]string{}
	}
	all[service][account] = secret
	return k.write(all)
}

func (k *fileKeychain) remove(service, account string) error {
	all, err := k.read()
	if err != nil || all[service][account] == "" {
		return err
	}
	if delete(all[service], account); len(all[service]) == 0 {
		delete(all, service)
	}
	if len(all) == 0 {
		return os.Remove(k.path)
	}
	return k.write(all)
}

// aead returns the CLI's cipher with its key, for an iv of size bytes.
func (k *fileKeychain) aead(size int) (cipher.AEAD, error) {
	k.once.Do(func() { k.key, k.keyErr = deriveKey() })
	if k.keyErr != nil {
		return nil, k.keyErr
	}
	block, err := aes.NewCipher(k.key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithNonceSize(block, size)
}

// deriveKey derives the CLI's key from the names of this machine and user.
func deriveKey() ([]byte, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
		if i := strings.LastIndexByte(name, '\\'); i >= 0 { // DOMAIN\user
			name = name[i+1:]
		}
	}
	return scrypt.Key([]byte("gemini-cli-oauth"), []byte(host+"-"+name+"-gemini-cli"), 16384, 8, 1, 32)
}

func (k *fileKeychain) read() (credentials, error) {
	data, err := safefile.ReadPrivate(k.path, maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials{}, nil
	}
	if err != nil {
		return nil, err
	}
	all := credentials{}
	text, err := k.open(strings.TrimSpace(string(data)))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, &brokenFile{k.path, err.Error(), "it may be from another machine or user; move it away to start anew"}
	}
	return all, nil
}

// open decrypts iv:tag:text, each in hex.
func (k *fileKeychain) open(text string) ([]byte, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return nil, errors.New("it is not in the CLI's form")
	}
	var raw [3][]byte
	for i, p := range parts {
		b, err := hex.DecodeString(p)
		if err != nil {
			return nil, errors.New("it is not in the CLI's form")
		}
		raw[i] = b
	}
	if len(raw[0]) != 12 && len(raw[0]) != 16 || len(raw[1]) != 16 {
		return nil, errors.New("it is not in the CLI's form")
	}
	a, err := k.aead(len(raw[0]))
	if err != nil {
		return nil, err
	}
	plain, err := a.Open(nil, raw[0], append(raw[2], raw[1]...), nil)
	if err != nil {
		return nil, errors.New("it does not decrypt with this machine's and user's key")
	}
	return plain, nil
}

func (k *fileKeychain) write(all credentials) error {
	a, err := k.aead(12)
	if err != nil {
		return err
	}
	iv := make([]byte, 12)
	rand.Read(iv) // it never fails (crypto/rand)
	sealed := a.Seal(nil, iv, indented(all), nil)
	cut := len(sealed) - 16
	text := fmt.Sprintf("%x:%x:%x", iv, sealed[cut:], sealed[:cut])
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	return safefile.Write(k.path, []byte(text), nil)
}
