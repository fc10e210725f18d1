package reach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// openWithin bounds how long a browser may take to read the redirect file.
const openWithin = 20 * time.Second

var errNoDisplay = errors.New("there is no display to open the page on; print its address with: pollux page")

// ShowPage opens an address of the page in the browser, in the background. clean removes its temporary file; any
// goroutine may call it, more than once.
func ShowPage(ctx context.Context, con *console.Console, address string) (clean func(), err error) {
	path, err := startBrowser(ctx, con, address)
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.Remove(path) }
	timer := time.AfterFunc(openWithin, remove)
	return func() { timer.Stop(); remove() }, nil
}

// showPageNow is ShowPage for a command that waits until the browser has read the file.
func showPageNow(ctx context.Context, con *console.Console, address string) error {
	path, err := startBrowser(ctx, con, address)
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // there is no event when the browser has read it
	return os.Remove(path)
}

// startBrowser gives the browser a private file that redirects to address, so that the code is in no argument list
// (SPEC §11.2).
func startBrowser(ctx context.Context, con *console.Console, address string) (path string, err error) {
	command, ok := opener()
	if !ok {
		return "", errNoDisplay
	}
	program, err := paths.Program(command[0])
	if err != nil {
		return "", fmt.Errorf("no program to open the browser with: %w", err)
	}
	dir := filepath.Join(con.Dirs.State, "open")
	for _, d := range []string{con.Dirs.State, dir} {
		if err := safefile.PrivateDir(d); err != nil {
			return "", err
		}
	}
	removeOld(dir)
	path = filepath.Join(dir, rand.Text()+".html")
	if err := safefile.Write(path, web.Redirect(address), &safefile.Options{Volatile: true}); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append(command[1:], path)...) // it outlives us
	if err := console.Outlive(cmd); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// removeOld removes files left by a pollux that was killed.
func removeOld(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 2*openWithin {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
