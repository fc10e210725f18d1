package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// openWithin bounds how long a browser may take to read the redirect file.
const openWithin = 20 * time.Second

var errNoDisplay = errors.New("there is no display to open the page on; print its address with: pollux page")

// openPage opens the page in the browser where the user wants it and there is one, in the
// background. The function that it returns removes what is left of it. A browser that cannot be
// started is only logged, as the address has been printed too.
func (a *app) openPage(ctx context.Context, c *companion.Companion, f *serveFlags) (clean func()) {
	if !a.settings.OpenBrowser || f.noOpen {
		return func() {}
	}
	address, err := c.PageAddress()
	var path string
	if err == nil {
		path, err = a.startBrowser(ctx, address)
	}
	if err != nil {
		a.log.Info("the browser was not opened", "err", err)
		return func() {}
	}
	remove := func() { _ = os.Remove(path) }
	timer := time.AfterFunc(openWithin, remove)
	return func() { timer.Stop(); remove() }
}

// openPageNow is openPage for a command that ends when the browser has read the file.
func (a *app) openPageNow(ctx context.Context, address string) error {
	path, err := a.startBrowser(ctx, address)
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // nothing tells when the browser has read it
	return os.Remove(path)
}

// startBrowser hands the browser a private file that redirects to address, so
// that no argument list shows the code in it (SPEC §11.2).
func (a *app) startBrowser(ctx context.Context, address string) (path string, err error) {
	command, ok := opener()
	if !ok {
		return "", errNoDisplay
	}
	program, err := proc.Find(command[0])
	if err != nil {
		return "", fmt.Errorf("no program to open the browser with: %w", err)
	}
	dir := filepath.Join(a.dirs.State, "open")
	for _, d := range []string{a.dirs.State, dir} {
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
	detach(cmd)                                                                                   // Ctrl-C in this terminal is not for the browser
	if err := cmd.Start(); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	go func() { _ = cmd.Wait() }()
	return path, nil
}

// removeOld removes what a pollux that was killed could not.
func removeOld(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 2*openWithin {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
