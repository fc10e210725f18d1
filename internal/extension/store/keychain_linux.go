package store

import (
	"os"

	"github.com/pollux-companion/pollux/internal/paths"
)

// systemKeychain returns the desktop's Secret Service, through libsecret's secret-tool. It is nil without a session
// bus, as over ssh and in containers. With a bus but without the program, the CLI may reach the keyring and pollux
// cannot; the user is told.
func (s *Store) systemKeychain() keychain {
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		return nil
	}
	path, err := paths.Program("secret-tool")
	if err != nil {
		s.warn("secret-tool is not installed (libsecret-tools), so secrets are looked for in Gemini CLI's encrypted file only; if the CLI uses the desktop's keyring, install it")
		return nil
	}
	k := secretTool(path)
	if _, err := k.get("pollux-probe", "pollux-probe"); err != nil {
		return nil // no keyring answers: the CLI then uses its file too
	}
	return k
}

// secretTool is the path of libsecret's program. It uses the attributes of the CLI's library (keytar).
type secretTool string

func (k secretTool) place() string { return "the system's keyring" }

func (k secretTool) get(service, account string) (string, error) {
	out, _, err := runKeychain("", string(k), "lookup", "service", service, "account", account)
	return out, err
}

func (k secretTool) set(service, account, secret string) error {
	_, _, err := runKeychain(secret, string(k), "store", "--label="+service+"/"+account,
		"xdg:schema", "org.freedesktop.Secret.Generic", "service", service, "account", account)
	return err
}

func (k secretTool) remove(service, account string) error {
	_, _, err := runKeychain("", string(k), "clear", "service", service, "account", account)
	return err
}
