package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
)

// TestMain lets the test binary act as a pollux that is killed.
func TestMain(m *testing.M) {
	for _, name := range []string{"GEMINI_CLI_HOME", "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH", "DBUS_SESSION_BUS_ADDRESS"} {
		os.Unsetenv(name)
	}
	os.Setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", filepath.Join(os.TempDir(), "pollux-no-such-folder", "settings.json"))
	os.Setenv("GEMINI_FORCE_FILE_STORAGE", "true")
	if os.Getenv("STORE_CHILD") != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// child does STORE_CHILD (install, update, uninstall) in STORE_HOME with the source STORE_SOURCE, and dies at the
// step STORE_KILL.
func child() int {
	s, err := Open(&Options{Home: os.Getenv("STORE_HOME"), WorkDir: os.Getenv("STORE_HOME")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	if os.Getenv("STORE_TWO_STEPS") == "1" {
		s.exchange = func(_, _ string) error { return errors.ErrUnsupported }
	}
	kill := os.Getenv("STORE_KILL")
	s.fault = func(step string) error {
		if step == kill {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			time.Sleep(time.Minute) // the signal is on its way
			return err
		}
		return nil
	}
	if err := perform(s, os.Getenv("STORE_CHILD"), os.Getenv("STORE_SOURCE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, ErrExists) {
			return 1
		}
		return 3
	}
	return 0
}

// perform does one operation on the extension "x".
func perform(s *Store, op, dir string) error {
	ctx := context.Background()
	switch op {
	case "install":
		p, err := s.PlanInstall(ctx, source.Source{Kind: source.Local, Location: dir}, nil)
		if err != nil {
			return err
		}
		defer p.Close()
		return p.Apply(ctx)
	case "update":
		x, err := s.Get("x")
		if err != nil {
			return err
		}
		p, err := s.PlanUpdate(ctx, x, nil)
		if err != nil {
			return err
		}
		defer p.Close()
		return p.Apply(ctx)
	case "uninstall":
		x, err := s.Get("x")
		if err != nil {
			return err
		}
		return s.Uninstall(ctx, x)
	}
	return errors.New("no such operation: " + op)
}

// newStore returns a store in a home folder of the test's own. Unexpected warnings fail the test.
func newStore(t testing.TB) *Store {
	t.Helper()
	home := t.TempDir()
	s, err := Open(&Options{Home: home, WorkDir: home, Warn: func(text string) { t.Errorf("unexpected warning: %s", text) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// extension writes version version of an extension "x" and returns its folder.
func extension(t testing.TB, dir, version string) string {
	t.Helper()
	write(t, filepath.Join(dir, manifest.FileName), `{"name":"x","version":"`+version+`"}`)
	write(t, filepath.Join(dir, "GEMINI.md"), "context of "+version)
	write(t, filepath.Join(dir, "deep", version+".txt"), version)
	return dir
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshot returns every file below the CLI's folder with its content, except the lock.
func snapshot(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.gemini, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == s.own("lock") {
			return err
		}
		rel, err := filepath.Rel(s.gemini, path)
		all[filepath.ToSlash(rel)] = d.Type().String()
		if err == nil && d.Type().IsRegular() {
			all[filepath.ToSlash(rel)] = read(t, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

// whole fails unless the folder of x contains exactly one complete version, or does not exist. It returns the
// version.
func whole(t testing.TB, s *Store) string {
	t.Helper()
	dir := s.folder("x")
	if !exists(dir) {
		return ""
	}
	_, version, _ := strings.Cut(read(t, filepath.Join(dir, "GEMINI.md")), "context of ")
	for name, want := range map[string]string{
		manifest.FileName: `{"name":"x","version":"` + version + `"}`, "deep/" + version + ".txt": version,
	} {
		if got := read(t, filepath.Join(dir, filepath.FromSlash(name))); got != want {
			t.Fatalf("half an extension: %s is %q, want %q", name, got, want)
		}
	}
	if readMetadata(dir) == nil {
		t.Fatal("an extension without install metadata")
	}
	return version
}

// tidy fails if a change left anything but its result.
func tidy(t testing.TB, s *Store) {
	t.Helper()
	if exists(s.journalFile()) {
		t.Errorf("a journal is left: %s", read(t, s.journalFile()))
	}
	if left, _ := os.ReadDir(s.stagingDir()); len(left) > 0 {
		t.Errorf("left in staging: %v", left)
	}
	entries, _ := os.ReadDir(s.Dir())
	for _, e := range entries {
		if e.Name() != "x" && e.Name() != "extension-enablement.json" {
			t.Errorf("left among the extensions: %s", e.Name())
		}
	}
	if left, _ := filepath.Glob(s.own("records", "*.next*")); len(left) > 0 {
		t.Errorf("left of a record: %v", left)
	}
}
