package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/permission"
)

// TestSwap: while somebody keeps swapping the workspace, or a protected folder in it, with a link to secrets, no
// command sees a secret. It may be refused (SPEC S-1).
func TestSwap(t *testing.T) {
	p := newPlace(t)
	for _, victim := range []string{p.workspace, filepath.Join(p.workspace, ".git")} {
		link := victim + "-link"
		if err := os.Symlink(filepath.Join(p.home, ".ssh"), link); err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, victim, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				}
			}
		}()
		ran := 0
		for range 40 {
			r, err := p.s.Run(context.Background(), Policy{Write: permission.Workspace}, Command{Workspace: p.workspace, Args: []string{"sh", "-c", "cat " + victim + "/id " + p.workspace + "/.git/id; true"}})
			switch {
			case err == nil:
				ran++
				if strings.Contains(string(r.Stdout), "content of id") {
					t.Fatal("a secret was read")
				}
			case !errors.Is(err, ErrSetup) && !errors.Is(err, ErrPolicy):
				t.Errorf("%v", err)
			}
		}
		close(stop)
		<-done
		t.Logf("%s: %d of 40 ran", victim, ran)
		if info, err := os.Lstat(victim); err == nil && info.Mode()&os.ModeSymlink != 0 {
			if err := unix.Renameat2(unix.AT_FDCWD, victim, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Fatal(err)
			}
		}
	}
}
