package store

import (
	"encoding/hex"
	"errors"
	"strings"
)

// systemKeychain returns the login keychain, through the system's program "security".
func (s *Store) systemKeychain() keychain {
	const path = "/usr/bin/security" // not from PATH: it receives secrets
	if _, _, err := runKeychain("", path, "default-keychain"); err != nil {
		return nil
	}
	return security(path)
}

// security is the path of the system's program.
type security string

func (k security) place() string { return "the login keychain" }

func (k security) get(service, account string) (string, error) {
	_, said, err := runKeychain("", string(k), "find-generic-password", "-s", service, "-a", account, "-g")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(said) {
		if secret, found := strings.CutPrefix(strings.TrimRight(line, "\n"), "password: "); found {
			return unquoted(secret)
		}
	}
	return "", nil
}

// unquoted parses the output of -g: quoted text or, for text with non-ASCII bytes, hexadecimal. (The output of -w
// does not tell which.)
func unquoted(printed string) (string, error) {
	if digits, isHex := strings.CutPrefix(printed, "0x"); isHex {
		digits, _, _ = strings.Cut(digits, " ")
		raw, err := hex.DecodeString(digits)
		return string(raw), err
	}
	return strings.TrimSuffix(strings.TrimPrefix(printed, `"`), `"`), nil
}

// set passes the command through stdin: an argument would show the secret to every process.
func (k security) set(service, account, secret string) error {
	if strings.ContainsAny(secret, "\r\n") { // the rest would be read as a command
		return errors.New("the value has a line break, which cannot be handed to the login keychain; set GEMINI_FORCE_FILE_STORAGE=true for Gemini CLI and pollux alike, and try again")
	}
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	line := "add-generic-password -U -s " + quote(service) + " -a " + quote(account) + " -w " + quote(secret) + "\n"
	_, _, err := runKeychain(line, string(k), "-i")
	return err
}

func (k security) remove(service, account string) error {
	_, _, err := runKeychain("", string(k), "delete-generic-password", "-s", service, "-a", account)
	return err
}
