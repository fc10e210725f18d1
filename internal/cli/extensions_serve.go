package cli

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/host"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

func (a *app) extensionsServeCommand() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the extensions to Gemini CLI over stdio (the bridge starts it)",
		Long: `Serves the tools and documents of the extensions that are enabled in this folder
and that you agreed to, as an MCP server on standard input and output. The
bridge has Gemini CLI start it; other MCP clients want pollux mcp.

It notices when extensions are installed, changed, allowed or removed, tells the
client, and brings the bridge's summary up to date.`,
		Example: `  pollux extensions serve`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, style := a.bridgeOptions(as)
			news := newsSince(style, a.bridgeText)
			o.Instructions, o.News = bridgeInstructions, func(set *capability.Set) string { return news(set) + a.troubleNews() }
			return a.serveExtensions(cmd.Context(), "Gemini CLI", &ask.Editor{Dirs: a.dirs.Run}, o)
		},
	}
	cmd.Flags().StringVar(&as, "as", bridge.Legacy, "the `NAME` by which Gemini CLI knows this server")
	return cmd
}

// bridgeOptions are what the bridge's server declares, for a server of that name, and the style of its summary.
func (a *app) bridgeOptions(server string) (host.Options, prompt.Style) {
	style := prompt.Gemini(server)
	told := prompt.IsGateway(a.bridgeText(nil))
	if told {
		style = style.Gateway()
	}
	return host.Options{
		Gateway: func(set *capability.Set) bool {
			return told || prompt.Everything(set, prompt.Gemini(server), bridge.Budget) > prompt.EverythingBudget
		},
		Pinned: func() []string { return a.settings.Tools.Pinned },
		Lately: a.lately,
	}, style
}

// troubleNews tells a model that something is wrong with the bridge. It names nothing: names are the words of others.
func (a *app) troubleNews() string {
	st := a.noteTroubles()
	if !st.Installed || len(st.Troubles) == 0 {
		return ""
	}
	return "\n\nSomething passes for pollux on this machine, or keeps it from working. Tell the user to type: pollux extensions bridge status"
}

// noteTroubles tells whoever reads a server's standard error what is wrong with the bridge, each thing once.
func (a *app) noteTroubles() bridge.State {
	s, err := a.store()
	if err != nil {
		return bridge.State{}
	}
	st, err := bridge.Look(s)
	if err != nil {
		a.log.Warn("the bridge cannot be looked at", "err", err)
		return bridge.State{}
	}
	if !st.Installed && os.Getenv("GEMINI_CLI") == "" {
		st.Troubles = slices.DeleteFunc(st.Troubles, func(t bridge.Trouble) bool { return t.Kind == "missing" }) // nobody misses it
	}
	for _, t := range st.Troubles {
		if _, told := a.troubles.LoadOrStore(t.What, true); !told {
			a.log.Warn("the bridge: " + troubleText(t))
			a.note(troubleText(t))
		}
	}
	return st
}

// bridgeInstructions are short: the summary stands in the bridge's context file.
func bridgeInstructions(set *capability.Set) string {
	return "Tools and documents of extensions, each tool in a sandbox of its own. " + capability.Describe + "() lists them all, also those that the extension context does not name."
}

// newsSince tells what a client has not been told of when its session began; told gives the text that it was told then.
func newsSince(style prompt.Style, told func(*capability.Set) string) func(*capability.Set) string {
	var known *prompt.Told
	return func(set *capability.Set) string {
		if known == nil {
			known = prompt.NewTold(set, told(set), style)
		}
		return known.News(set, style)
	}
}

// bridgeText is what Gemini CLI reads of the bridge's context files in this folder.
func (a *app) bridgeText(*capability.Set) string {
	s, err := a.store()
	if err != nil {
		return ""
	}
	dir, err := here(".")
	if err != nil {
		return ""
	}
	return bridge.Told(s, dir)
}

// serveExtensions serves one client on standard input and output. o may be filled in part; in asks the user.
func (a *app) serveExtensions(ctx context.Context, by string, in *ask.Editor, o host.Options) error {
	out := a.stdout
	if a.stdout == os.Stdout {
		os.Stdout = os.Stderr // nothing else may reach the client
	}
	dir, err := here(".")
	if err != nil {
		return err
	}
	in.Folder = dir
	ctx, stop := interrupted(ctx)
	defer stop()
	a.tellWhoTyped(by)
	asker := ask.First(host.Elicitor{}, in)
	d, err := a.dispatcher(by, asker, false)
	if err != nil {
		return err
	}
	defer func() {
		if a.pool != nil {
			a.pool.Close()
		}
	}()
	o.Ready = func() {
		a.pool = sandbox.NewPool(1)
		if r, err := a.runner(by, asker); err == nil {
			d.UseRunner(r)
		}
	}
	keeper := newBridgeKeeper(a)
	defer keeper.close()
	o.Dispatcher, o.Version, o.Log = d, version(), a.log
	o.Watch = a.watched
	o.Changed = keeper.changed
	return host.Serve(ctx, a.stdin, out, o)
}

// watched lists what changes when extensions, or what the user agreed to, do.
func (a *app) watched(*capability.Set) []string {
	s, err := a.store()
	if err != nil {
		return nil
	}
	paths := []string{filepath.Dir(s.Dir()), s.Dir(), filepath.Join(s.Dir(), "extension-enablement.json"), a.consent().Path()}
	all, err := s.List()
	if err != nil {
		return paths
	}
	for _, x := range all {
		if x.Bridge() {
			continue
		}
		paths = append(paths, x.Folder, filepath.Join(x.Dir, manifest.FileName))
	}
	return paths
}

// bridgeKeeper brings the bridge up to date beside a server, at its end at the latest: sessions may be shorter than a moment.
// It owns one goroutine, which close ends.
type bridgeKeeper struct {
	wake chan struct{}
	end  context.CancelFunc
	done chan struct{}
}

func newBridgeKeeper(a *app) *bridgeKeeper {
	ctx, end := context.WithCancel(context.Background())
	k := &bridgeKeeper{wake: make(chan struct{}, 1), end: end, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		for {
			select {
			case <-ctx.Done():
				select {
				case <-k.wake:
					a.bridgeNow()
				default:
				}
				return
			case <-k.wake:
			}
			select { // the handshake comes first
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			a.bridgeNow()
		}
	}()
	return k
}

// bridgeNow brings the bridge up to date, in a second at the most.
func (a *app) bridgeNow() {
	defer func() {
		if r := recover(); r != nil { // the server is more than its bridge
			a.log.Error("bringing the bridge up to date panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := a.updateBridge(ctx); err != nil {
		a.log.Warn("the bridge was not brought up to date", "err", err)
	}
}

func (k *bridgeKeeper) changed(*capability.Set) {
	select {
	case k.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

func (k *bridgeKeeper) close() {
	k.end()
	<-k.done
}

// mcpInstructions are the whole summary: other clients have no context file.
func mcpInstructions(budget int) func(*capability.Set) string {
	return func(set *capability.Set) string {
		return prompt.Summarize(set, &prompt.SummaryOptions{Style: prompt.MCP(), Budget: budget}).Text
	}
}
