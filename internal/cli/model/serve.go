package model

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/ask"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/host"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

func serveCommand(kit *tools.Kit) *cobra.Command {
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
			o, style := bridgeOptions(kit, as)
			news, troubles := newsSince(style, func(*capability.Set) string { return bridgeText(kit) }), &troubleTeller{kit: kit}
			o.Instructions, o.News = bridgeInstructions, func(set *capability.Set) string { return news(set) + troubles.news() }
			return serve(cmd.Context(), kit, "Gemini CLI", &ask.Editor{Dirs: kit.Dirs.Run}, o)
		},
	}
	cmd.Flags().StringVar(&as, "as", bridge.Legacy, "the `NAME` by which Gemini CLI knows this server")
	return cmd
}

// bridgeOptions returns what the bridge's server declares, for a server of that name, and the style of its summary.
func bridgeOptions(kit *tools.Kit, server string) (host.Options, prompt.Style) {
	style := prompt.Gemini(server)
	told := prompt.IsGateway(bridgeText(kit))
	if told {
		style = style.Gateway()
	}
	return host.Options{
		Gateway: func(set *capability.Set) bool {
			now, _ := prompt.Gemini(server).Fit(set, bridge.Budget)
			return told || now.IsGateway()
		},
		Pinned: func() []string { return kit.Settings.Tools.Pinned },
		Lately: func() []string { return lately(kit) },
	}, style
}

// news tells a model that something is wrong with the bridge. It includes no names, because others choose them.
func (t *troubleTeller) news() string {
	st := t.note()
	if !st.Installed || len(st.Troubles) == 0 {
		return ""
	}
	return "\n\nSomething passes for pollux on this machine, or keeps it from working. Tell the user to type: pollux extensions bridge status"
}

// A troubleTeller reports what is wrong with the bridge.
type troubleTeller struct {
	kit  *tools.Kit
	told sync.Map
}

// note reports each trouble of the bridge once, on the server's standard error.
func (t *troubleTeller) note() bridge.State {
	s, err := t.kit.Store()
	if err != nil {
		return bridge.State{}
	}
	st, err := bridge.Look(s)
	if err != nil {
		t.kit.Log.Warn("the bridge cannot be looked at", "err", err)
		return bridge.State{}
	}
	if !st.Installed && os.Getenv("GEMINI_CLI") == "" {
		st.Troubles = slices.DeleteFunc(st.Troubles, func(t bridge.Trouble) bool { return t.Kind == "missing" }) // nobody misses it
	}
	for _, trouble := range st.Troubles {
		if _, told := t.told.LoadOrStore(trouble.What, true); !told {
			t.kit.Log.Warn("the bridge: " + troubleText(trouble))
			t.kit.Note(troubleText(trouble))
		}
	}
	return st
}

// bridgeInstructions returns short instructions, because the summary is in the bridge's context file. Without extensions
// there is nothing to say: pollux's own tool, without which Gemini CLI takes the server for a broken one, explains itself.
func bridgeInstructions(set *capability.Set) string {
	if len(set.Extensions())+len(set.Waiting()) == 0 {
		return ""
	}
	return "Tools and documents of extensions, each tool in a sandbox of its own. " + capability.Describe + "() lists them all, also those that the extension context does not name."
}

// newsSince returns what a client was not told when its session began; told returns the text that it was told then.
func newsSince(style prompt.Style, told func(*capability.Set) string) func(*capability.Set) string {
	var known *prompt.Told
	return func(set *capability.Set) string {
		if known == nil {
			known = prompt.NewTold(set, told(set), style)
		}
		return known.News(set, style)
	}
}

// bridgeText returns what Gemini CLI reads from the bridge's context files in this folder.
func bridgeText(kit *tools.Kit) string {
	s, err := kit.Store()
	if err != nil {
		return ""
	}
	dir, err := console.Here(".")
	if err != nil {
		return ""
	}
	return bridge.Told(s, dir)
}

// serve serves one client on standard input and output. o may be partly filled in; in asks the user.
func serve(ctx context.Context, kit *tools.Kit, by string, in *ask.Editor, o host.Options) error {
	out := kit.Out
	if kit.Out == os.Stdout {
		os.Stdout = os.Stderr // nothing else may write to the client
	}
	dir, err := console.Here(".")
	if err != nil {
		return err
	}
	in.Folder = dir
	ctx, stop := console.Interrupted(ctx)
	defer stop()
	kit.TellWhoTyped(by)
	asker := ask.First(host.Elicitor{}, in)
	d, err := newDispatcher(kit, by, asker, false)
	if err != nil {
		return err
	}
	defer func() {
		if kit.Pool != nil {
			kit.Pool.Close()
		}
	}()
	o.Ready = func() {
		kit.Pool = sandbox.NewPool(1)
		if r, err := kit.Runner(by, asker); err == nil {
			d.UseRunner(r)
		}
	}
	keeper := newBridgeKeeper(kit)
	defer keeper.close()
	o.Dispatcher, o.Version, o.Log = d, console.Version(), kit.Log
	o.Watch = func(*capability.Set) []string { return watched(kit) }
	o.Changed = keeper.changed
	return host.Serve(ctx, console.OwnPipes(kit.In, out), out, o) // the client answers there for the user
}

// watched lists the files that change with the extensions or the user's consents.
func watched(kit *tools.Kit) []string {
	s, err := kit.Store()
	if err != nil {
		return nil
	}
	paths := []string{filepath.Dir(s.Dir()), s.Dir(), filepath.Join(s.Dir(), "extension-enablement.json"), kit.Consent().Path()}
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

// bridgeKeeper updates the bridge while a server runs, at the latest at its end, because a session may be very short.
// It owns one goroutine, which close ends.
type bridgeKeeper struct {
	wake chan struct{}
	end  context.CancelFunc
	done chan struct{}
}

func newBridgeKeeper(kit *tools.Kit) *bridgeKeeper {
	ctx, end := context.WithCancel(context.Background())
	k := &bridgeKeeper{wake: make(chan struct{}, 1), end: end, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		for {
			select {
			case <-ctx.Done():
				select {
				case <-k.wake:
					bridgeNow(kit)
				default:
				}
				return
			case <-k.wake:
			}
			select { // the handshake comes first
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			bridgeNow(kit)
		}
	}()
	return k
}

// bridgeNow updates the bridge, within a second.
func bridgeNow(kit *tools.Kit) {
	defer func() {
		if r := recover(); r != nil { // the server must survive a failure of the bridge
			kit.Log.Error("bringing the bridge up to date panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := updateBridge(ctx, kit); err != nil {
		kit.Log.Warn("the bridge was not brought up to date", "err", err)
	}
}

func (k *bridgeKeeper) changed(*capability.Set) {
	select {
	case k.wake <- struct{}{}:
	default: // an update is already due
	}
}

func (k *bridgeKeeper) close() {
	k.end()
	<-k.done
}

// mcpOptions returns what other clients than Gemini CLI are told and given within a budget of tokens. They have no
// context file, so the instructions are the summary. A session that began with the gateway keeps it.
func mcpOptions(kit *tools.Kit, budget int) host.Options {
	style, summary := prompt.MCP(), budget
	told := func(set *capability.Set) string {
		return prompt.Summarize(set, &prompt.SummaryOptions{Style: style, Budget: summary}).Text
	}
	var news func(*capability.Set) string
	return host.Options{
		Instructions: func(set *capability.Set) string { // called once, before all else
			style, summary = prompt.MCP().Fit(set, budget)
			news = newsSince(style, told)
			return told(set)
		},
		News: func(set *capability.Set) string { return news(set) },
		Gateway: func(set *capability.Set) bool {
			now, _ := prompt.MCP().Fit(set, budget)
			return style.IsGateway() || now.IsGateway()
		},
		Pinned:  func() []string { return kit.Settings.Tools.Pinned },
		Lately:  func() []string { return lately(kit) },
		Prompts: true,
	}
}
