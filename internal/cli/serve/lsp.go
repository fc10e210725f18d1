package serve

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/editor/lsp"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// LSP makes pollux lsp.
func LSP(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor over standard input and output",
		Long: `Serves one editor process over standard input and output, with JSON-RPC, as a
language server does. pollux's plugins start it, and any LSP client can. The
companion starts with the editor's initialize and ends with the editor. If a CLI
is still connected then, a keeper holds its connection until an editor comes back
to the folder. pollux status shows the keeper, pollux stop ends it.

Both Content-Length headers and one message a line are understood.`,
		Example: `  pollux lsp        as the command of a language server in your editor's settings`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveEditor(cmd.Context(), con) },
	}
}

// serveEditor serves one editor until it ends, or a signal comes.
func serveEditor(ctx context.Context, con *console.Console) error {
	ctx, stop := console.Interrupted(ctx)
	defer stop()
	con.TellWhoTyped("an editor")
	widen(con.In)
	widen(con.Out)
	return Over(ctx, con, console.OwnPipes(con.In, con.Out), con.Out)
}

// Over serves one editor over a pair of pipes until it ends, or ctx does.
func Over(ctx context.Context, con *console.Console, in io.Reader, out io.Writer) error {
	e := &editor{con: con, ctx: ctx}
	e.server = lsp.New(rpc.NewChannel(in, output{out}, nil), lsp.Options{Start: e.start, Version: console.Version(), Log: con.Log})
	err := e.server.Serve(ctx)
	e.removePages()
	if errors.Is(err, lsp.ErrExit) {
		return console.Exit(console.CodeNo)
	}
	return err
}

// output is standard output without a Close.
type output struct{ io.Writer }

func (output) Close() error { return nil }

// An editor is the process behind standard input. It starts the companion once it has said who it is.
type editor struct {
	*companion.Companion
	con    *console.Console
	ctx    context.Context
	server *lsp.Server

	mu    sync.Mutex // guards pages
	pages []func()   // functions that remove the browser's files
}

func (e *editor) start(ctx context.Context, h lsp.Hello) (lsp.Companion, error) {
	o := base(e.con)
	o.Roots, o.PID, o.IDE.Name, o.IDE.DisplayName = h.Roots, h.PID, h.IDE.Name, h.IDE.DisplayName
	o.Editor, o.OpenPage, o.Keep = e.server, e.openPage, keeperOf(e.con)
	c, err := companion.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	e.Companion = c
	go func() {
		select {
		case err := <-c.Failed():
			e.con.Log.Error("the companion has stopped working", "err", err)
		case <-e.ctx.Done():
		}
	}()
	return e, nil
}

// openPage opens an address of the page in the browser.
func (e *editor) openPage(address string) error {
	if !e.con.Settings.OpenBrowser {
		return errors.New("the settings forbid it (openBrowser)")
	}
	clean, err := reach.ShowPage(e.ctx, e.con, address)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pages = append(e.pages, clean)
	return nil
}

func (e *editor) removePages() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, clean := range e.pages {
		clean()
	}
	e.pages = nil
}

// Env implements lsp.Companion.
func (e *editor) Env() (map[string]string, error) {
	vars, err := reach.Variables(e.Connection(), "")
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

// Sharing implements lsp.Companion.
func (e *editor) Sharing() lsp.Sharing { return lsp.Sharing(e.Companion.Sharing()) }

// Info implements lsp.Companion.
func (e *editor) Info() lsp.Info {
	info := e.Companion.Info()
	return lsp.Info{
		Version: console.Version(), Port: info.Port, Roots: info.Roots,
		DiscoveryFile: info.DiscoveryFile, Resumed: info.Resumed, Log: e.con.Dirs.LogFile(),
	}
}
