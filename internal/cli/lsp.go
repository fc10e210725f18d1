package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/rpc"
)

func (a *app) lspCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor over standard input and output",
		Long: `Speaks JSON-RPC over standard input and output, as a language server does, for
one editor process: pollux's plugins start it, and any LSP client may. The
companion starts with the editor's initialize and ends with the editor. Where a
CLI is still connected then, a keeper holds its connection until an editor comes
back to the folder; pollux status shows it, pollux stop ends it.

Both Content-Length headers and one message a line are understood.`,
		Example: `  pollux lsp        as the command of a language server in your editor's settings`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.lsp(cmd.Context()) },
	}
}

// lsp serves one editor until it ends, or a signal comes.
func (a *app) lsp(ctx context.Context) error {
	sigs := catchSignals()
	defer sigs.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.tellWhoTyped("an editor")
	widen(a.stdin)
	widen(a.stdout)
	e := &editor{app: a, ctx: ctx}
	e.server = lsp.New(rpc.NewChannel(a.stdin, output{a.stdout}, nil), lsp.Options{Start: e.start, Version: version(), Log: a.log})
	go func() {
		select {
		case <-sigs.end:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := e.server.Serve(ctx)
	e.removePages()
	if errors.Is(err, lsp.ErrExit) {
		return exitError(exitNo)
	}
	return err
}

// tellWhoTyped says to a person at a terminal what a server on standard input waits for: a program's messages.
func (a *app) tellWhoTyped(whose string) {
	if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
		fmt.Fprintf(a.stderr, "pollux: this is for programs; it waits for messages of %s on standard input. Ctrl-C ends it.\n", whose)
	}
}

// output is standard output, which is never closed.
type output struct{ io.Writer }

func (output) Close() error { return nil }

// An editor is the process behind standard input; it starts the companion when
// it has said who it is.
type editor struct {
	*companion.Companion
	app    *app
	ctx    context.Context
	server *lsp.Server

	mu    sync.Mutex // guards pages
	pages []string   // the files that the browser was started with
}

func (e *editor) start(ctx context.Context, h lsp.Hello) (lsp.Companion, error) {
	c, err := companion.Start(ctx, companion.Options{
		Dirs:     e.app.dirs,
		Settings: e.app.settings,
		Roots:    h.Roots,
		IDE:      discovery.IDE{Name: h.IDE.Name, DisplayName: h.IDE.DisplayName},
		PID:      h.PID,
		Version:  version(),
		Editor:   e.server,
		OpenPage: e.openPage,
		Keep:     e.app.startKeeper,
		Log:      e.app.log,
	})
	if err != nil {
		return nil, err
	}
	e.Companion = c
	go func() {
		select {
		case err := <-c.Failed():
			e.app.log.Error("the companion has stopped working", "err", err)
		case <-e.ctx.Done():
		}
	}()
	return e, nil
}

// openPage opens an address of the page in the browser.
func (e *editor) openPage(address string) error {
	if !e.app.settings.OpenBrowser {
		return errors.New("the settings forbid it (openBrowser)")
	}
	path, err := e.app.startBrowser(e.ctx, address)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.pages = append(e.pages, path)
	e.mu.Unlock()
	time.AfterFunc(openWithin, e.removePages)
	return nil
}

func (e *editor) removePages() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, path := range e.pages {
		_ = os.Remove(path)
	}
	e.pages = nil
}

// Env implements lsp.Companion.
func (e *editor) Env() (map[string]string, error) {
	vars, err := variables(e.Connection(), "")
	if err != nil {
		return nil, err
	}
	env := make(map[string]string, len(vars))
	for _, v := range vars {
		env[v.Name] = v.Value
	}
	return env, nil
}

// Sessions implements lsp.Companion.
func (e *editor) Sessions() []lsp.Session {
	var list []lsp.Session
	for _, s := range e.Companion.Sessions() {
		list = append(list, lsp.Session{Name: s.Label, Version: s.Version, ID: s.ID})
	}
	return list
}

// Info implements lsp.Companion.
func (e *editor) Info() lsp.Info {
	info := e.Companion.Info()
	return lsp.Info{
		Version: version(), Port: info.Port, Roots: info.Roots,
		DiscoveryFile: info.DiscoveryFile, Resumed: info.Resumed, Log: e.app.dirs.LogFile(),
	}
}
