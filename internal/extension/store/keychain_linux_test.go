package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeyring: with a session bus and libsecret's program, secrets go there, under the attributes that the CLI's
// library uses, and never into an argument.
func TestKeyring(t *testing.T) {
	dir := t.TempDir()
	// A fake that stores each secret in a file named by the attributes, and its arguments in another file.
	write(t, filepath.Join(dir, "secret-tool"), `#!/bin/sh
echo "$@" >> "`+dir+`/args"
op=$1; shift
case "$1" in --label=*) shift;; esac
if [ "$1" = xdg:schema ]; then [ "$2" = org.freedesktop.Secret.Generic ] || exit 9; shift 2; fi
[ "$1" = service ] && [ "$3" = account ] || exit 9
f="`+dir+`/$(echo "$2|$4" | tr '/ ' '__')"
case $op in
store) cat > "$f";;
lookup) [ -f "$f" ] && cat "$f";;
clear) rm -f "$f";;
esac
`)
	must(t, os.Chmod(filepath.Join(dir, "secret-tool"), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	t.Setenv("GEMINI_FORCE_FILE_STORAGE", "")
	k := newStore(t).keychain()
	if _, is := k.(secretTool); !is {
		t.Fatalf("the keychain is %s", k.place())
	}
	if got, err := k.get("a service", "account"); err != nil || got != "" {
		t.Errorf("without a secret: %q, %v", got, err)
	}
	must(t, k.set("a service", "account", "s3crét"))
	if got, err := k.get("a service", "account"); err != nil || got != "s3crét" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, k.remove("a service", "account"))
	if got, err := k.get("a service", "account"); err != nil || got != "" {
		t.Errorf("after removing: %q, %v", got, err)
	}
	if strings.Contains(read(t, filepath.Join(dir, "args")), "s3cr") {
		t.Error("the secret was an argument")
	}
}

// TestNoKeyring: with a bus but without the program, the encrypted file is used, and the user is told once that the
// CLI may look elsewhere.
func TestNoKeyring(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	t.Setenv("GEMINI_FORCE_FILE_STORAGE", "")
	s, told := newStore(t), 0
	s.warn = func(string) { told++ }
	for range 3 {
		if _, is := s.keychain().(*fileKeychain); !is {
			t.Fatalf("the keychain is %s", s.keychain().place())
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
