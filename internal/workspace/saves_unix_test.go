//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/usertest"
)

// saverOf tells a process that TestKilledSaves has begun which folder to save in.
const saverOf = "POLLUX_TEST_SAVES_IN"

// saver saves for ever: large files, new ones and such that exist.
func saver(root string) {
	w, err := New([]string{root}, &Options{Saves: filepath.Join(root, "..", "saves")})
	if err != nil {
		panic(err)
	}
	text := []byte(strings.Repeat("a line of text\n", 100_000))
	fmt.Println("ready")
	for n := 0; ; n++ {
		if err := w.WriteFile(filepath.Join(root, "sub", fmt.Sprint(n%7)), text); err != nil {
			panic(err)
		}
	}
}

// A process that is killed while it saves leaves something in the user's folders now and then, and the next start removes it: all of it, and
// nothing else.
func TestKilledSaves(t *testing.T) {
	if root := os.Getenv(saverOf); root != "" {
		saver(root)
	}
	base := t.TempDir()
	root := filepath.Join(base, "project")
	if err := os.MkdirAll(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		found, err := filepath.Glob(filepath.Join(root, "sub", ".pollux-tmp-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := 0
	for range 30 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSaves$")
		cmd.Env = append(os.Environ(), saverOf+"="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		wait := time.NewTimer(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		<-wait.C
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		found := left()
		before += len(found)
		removed := SweepSaves(filepath.Join(base, "saves"))
		if after := left(); len(after) > 0 || len(removed) != len(found) {
			t.Fatalf("left %v, removed %v, left then %v", found, removed, after)
		}
	}
	if before == 0 {
		t.Error("no kill has left anything: the test does not reach what it is about")
	}
	if notes, _ := os.ReadDir(filepath.Join(base, "saves")); len(notes) > 0 {
		t.Errorf("notes are left: %v", notes)
	}
}

// The sweep removes only what a note of an ended process tells of, if it is a regular file of this user's with a name of pollux's own.
func TestSweepSavesKeeps(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "saves")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	note := func(temp, name string, pid int) {
		t.Helper()
		text := fmt.Sprintf(`{"temp":%q,"pid":%d,"start":1}`, temp, pid)
		if err := os.WriteFile(filepath.Join(dir, name+saveSuffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string {
		t.Helper()
		path := filepath.Join(base, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const dead = 1 << 30
	ours := file(".pollux-tmp-ours")
	note(ours, ".pollux-tmp-ours", dead)
	kept := []string{file(".pollux-tmp-noted-nowhere"), file("precious"), file(".pollux-tmp-alive"), file(".pollux-tmp-misnamed")}
	note(kept[1], "precious", dead)
	text := fmt.Sprintf(`{"temp":%q,"pid":%d}`, kept[2], os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, ".pollux-tmp-alive"+saveSuffix), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	note(kept[3], ".pollux-tmp-other", dead)
	link := filepath.Join(base, ".pollux-tmp-link")
	folder := filepath.Join(base, ".pollux-tmp-folder")
	if err := errors.Join(os.Symlink(kept[1], link), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, link, folder)
	note(link, ".pollux-tmp-link", dead)
	note(folder, ".pollux-tmp-folder", dead)
	if os.Geteuid() == 0 {
		theirs := file(".pollux-tmp-theirs")
		if err := os.Chown(theirs, usertest.ID, usertest.ID); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, theirs)
		note(theirs, ".pollux-tmp-theirs", dead)
	}
	note(filepath.Join(base, "none", ".pollux-tmp-gone"), ".pollux-tmp-gone", dead)
	if err := os.WriteFile(filepath.Join(dir, ".pollux-tmp-torn"+saveSuffix), []byte(`{"temp":"/`), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed := SweepSaves(dir); !slices.Equal(removed, []string{ours}) {
		t.Errorf("removed %v", removed)
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	if !safefile.IsTemp(safefile.TempName()) {
		t.Error("TempName is not IsTemp")
	}
}
