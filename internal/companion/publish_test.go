package companion

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC D-1, D-4: whatever another user puts in the way in a shared temporary folder, a companion starts, says so, leads its
// terminals to a file of its own, and takes its place when that is free.
func TestBlockedFolderD4(t *testing.T) {
	for name, block := range map[string]func(t *testing.T, tmp string) error{
		"gemini is a link":             func(t *testing.T, tmp string) error { return os.Symlink(t.TempDir(), filepath.Join(tmp, "gemini")) },
		"gemini is a link to nowhere":  func(_ *testing.T, tmp string) error { return os.Symlink("/none/such", filepath.Join(tmp, "gemini")) },
		"gemini is a file":             func(_ *testing.T, tmp string) error { return os.WriteFile(filepath.Join(tmp, "gemini"), nil, 0o600) },
		"another user's gemini":        anothers("gemini", 0o700),
		"another user's, open to all":  anothers("gemini", 0o777),
		"another user's gemini as ide": anothers(filepath.Join("gemini", "ide"), 0o755),
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := options(t)
			tmp := discovery.TempDir()
			if err := block(t, tmp); err != nil {
				t.Fatal(err)
			}
			if discovery.Prepare(discovery.Dir()) == nil {
				return // nothing is in the way: there is no other user here
			}
			c := start(t, o)
			trouble := c.folderTrouble()
			if trouble == nil || trouble.What == "" || trouble.Do == "" {
				t.Fatalf("%+v", trouble)
			}
			if !c.Info().Hidden {
				t.Error("it counts as found")
			}
			private := c.Connection().TempDir
			entries, err := discovery.List(filepath.Join(private, "gemini", "ide"))
			if err != nil || len(entries) != 1 || entries[0].Path != c.Info().DiscoveryFile || entries[0].File.Token != c.Connection().Token {
				t.Errorf("%q: %+v, %v", private, entries, err)
			}
			if err := c.SetRoots(o.Roots); err != nil {
				t.Errorf("new folders: %v", err)
			}
			if err := os.RemoveAll(filepath.Join(tmp, "gemini")); err != nil {
				t.Fatal(err)
			}
			c.touch(time.Now())
			if entries, _ := discovery.List(discovery.Dir()); len(entries) != 1 || c.folderTrouble() != nil || c.Info().Hidden || c.Connection().TempDir != "" {
				t.Errorf("the obstacle has gone: %+v, %+v", entries, c.folderTrouble())
			}
			c.Stop(t.Context())
			nothingLeft(t, o)
			if left, _ := os.ReadDir(filepath.Join(private, "gemini", "ide")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("tmp is a file", func(t *testing.T) {
		o, _, _ := options(t)
		t.Setenv("TMPDIR", os.Args[0])
		if c := start(t, o); c.folderTrouble() == nil || c.Connection().TempDir == "" {
			t.Error("it says nothing")
		}
	})
}

// anothers makes a folder as another user would.
func anothers(name string, mode os.FileMode) func(*testing.T, string) error {
	return func(t *testing.T, tmp string) error {
		for dir := filepath.Dir(filepath.Join(tmp, name)); ; dir = filepath.Dir(dir) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			if dir == tmp {
				break
			}
		}
		path := filepath.Join(tmp, name)
		if err := os.Mkdir(path, mode); err != nil || os.Geteuid() != 0 {
			return err
		}
		return os.Chown(path, usertest.ID, usertest.ID)
	}
}

// SPEC D-6: what a companion that was killed has left in the private folder is removed by the next that starts, whether that one needs the
// folder or not; what lives stays.
func TestPrivateFolderIsSwept(t *testing.T) {
	for name, blocked := range map[string]bool{"needed": true, "not needed": false} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := options(t)
			if blocked {
				if err := os.WriteFile(filepath.Join(discovery.TempDir(), "gemini"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			private := filepath.Join(o.Dirs.State, "tmp", "gemini", "ide")
			dead := discovery.NewPlace(private, 1<<30, 1) // nobody listens at port 1
			if err := dead.Put(&discovery.File{Port: 1, Roots: o.Roots, Token: "left behind"}); err != nil {
				t.Fatal(err)
			}
			ln, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			port := ln.Addr().(*net.TCPAddr).Port
			alive := discovery.NewPlace(private, os.Getppid(), port)
			if err := alive.Put(&discovery.File{Port: port, Roots: o.Roots}); err != nil {
				t.Fatal(err)
			}
			c := start(t, o)
			for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
				if _, err := os.Lstat(dead.Path()); err != nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it is still there")
				}
			}
			entries, err := discovery.List(private)
			if want := map[bool]int{true: 2, false: 1}[blocked]; err != nil || len(entries) != want {
				t.Errorf("%d files are left, want %d: %v", len(entries), want, err)
			}
			c.Stop(t.Context())
		})
	}
}
