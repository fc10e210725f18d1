package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/control"
)

// host examines which address the CLI dials.
func (x *examination) host() {
	host := x.w.Host()
	f := Finding{ID: "host", Level: OK, What: "it dials " + host}
	if host != "127.0.0.1" {
		f.What = "it takes itself to be in a container, and dials " + host
		f.Level, f.Why = Note, "that is the machine around the container; an editor in the same container is not there"
		f.Mend, f.Remark = "export REMOTE_CONTAINERS=1", "when the editor runs in the container too"
	}
	x.add(f)
}

// proxy examines whether an old CLI would send messages for the editor through a proxy.
func (x *examination) proxy() {
	set := ""
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if x.w.Getenv(name) != "" {
			set = name
			break
		}
	}
	if set == "" {
		x.ok("proxy", "no proxy stands between")
		return
	}
	bypass := x.w.Getenv("NO_PROXY") + "," + x.w.Getenv("no_proxy")
	if strings.Contains(bypass, "127.0.0.1") || strings.Contains(bypass, "*") {
		x.ok("proxy", set+" is set, and NO_PROXY leaves 127.0.0.1 out")
		return
	}
	x.add(Finding{ID: "proxy", Level: Warning, What: set + " is set",
		Why:  "CLIs of today go around it for their editor; older ones send it to the proxy, and find nobody",
		Mend: "export NO_PROXY=127.0.0.1,localhost,$NO_PROXY"})
}

// firstContext is how long the companion may take to send its first context.
const firstContext = 3 * time.Second

// reach connects to the companion as the CLI would, looks, and leaves.
func (x *examination) reach(ctx context.Context, ways []client.Way) {
	if x.r.choice.Fault != nil || x.failed("choice", "workspace") {
		return
	}
	if len(ways) == 0 {
		x.add(Finding{ID: "port", Level: Fault, What: x.taken() + " names neither a port nor a command", Why: "there is nothing to connect to", Remark: "start the companion again"})
		return
	}
	for i, way := range ways {
		if x.try(ctx, way, i < len(ways)-1) {
			x.views(ctx, way)
			return
		}
	}
	if x.r.Says == "" {
		x.r.Says = client.Failed(x.r.choice)
	}
}

// try connects by one way; more says that the CLI has another way.
func (x *examination) try(ctx context.Context, way client.Way, more bool) bool {
	level := Fault
	if more {
		level = Warning
	}
	if way.Port != 0 && !x.open(ctx, way, level) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	heard := make(chan *client.Context, 8)
	faults := make(chan error, 1)
	c := client.New(x.w, &client.Options{OnFault: func(err error) {
		select {
		case faults <- err:
		default:
		}
	}, OnContext: func(ide *client.Context) {
		select {
		case heard <- ide:
		default:
		}
	}})
	defer c.Leave(context.WithoutCancel(ctx))
	if err := c.Join(ctx, way); err != nil {
		x.add(x.refusal(way, level, err))
		return false
	}
	x.ok("handshake", fmt.Sprintf("the companion speaks MCP (%s)", way))
	if x.r.choice.IDE != nil {
		x.r.Says = "Connected to " + x.r.choice.IDE.DisplayName
	}
	x.tools(c)
	f := Finding{ID: "context", Level: Fault, Why: "the model would not know what you look at", Mend: x.conform(way), Remark: "start the companion again; the command says what it does wrong"}
	select {
	case ide := <-heard:
		if ide != nil {
			x.ok("context", "the first context has come: "+describe(ide))
			return true
		}
		f.What = "the CLI would be disconnected at once: " + c.Status().Details
	case err := <-faults:
		f.What = "the CLI would be disconnected at once: " + err.Error()
	case <-time.After(firstContext):
		f.What = "no context has come within " + firstContext.String()
	}
	if way.Command != "" {
		f.What, f.Why = "the relay runs, and no editor serves this folder", "the CLI is connected, and asks in the terminal until an editor comes"
		f.Mend, f.Remark = "pollux serve", "or start your editor with its plugin"
	}
	x.add(f)
	return true
}

// open asks the port before it opens a session, to tell the faults apart.
func (x *examination) open(ctx context.Context, way client.Way, level Level) bool {
	ask, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	health, note := knock(ask, way.Host, way.Port, way.Token)
	where := way.From
	if where == "the discovery file" {
		where = x.taken()
	}
	switch health {
	case Healthy:
		x.ok("port", fmt.Sprintf("somebody listens at %s:%d", way.Host, way.Port))
		switch {
		case note != "":
			x.add(Finding{ID: "token", Level: Note, What: note, Why: "only this user's listener is told it"})
		case way.Token == "":
			x.add(Finding{ID: "token", Level: Note, What: "there is no token", Why: "whoever can reach the port may speak to the editor"})
		default:
			x.ok("token", "the token is accepted")
		}
		return true
	case Stranger:
		x.add(Finding{ID: "token", Level: level, What: note, Why: fmt.Sprintf("%s was left behind by a companion that has gone, or has been changed", where),
			Mend: x.repair(), Remark: "then start the companion again", Fix: fixSweep})
		return false
	}
	f := Finding{ID: "port", Level: level, What: note, Why: fmt.Sprintf("%s names it; the CLI tries no other file", where),
		Mend: x.repair(), Remark: "then start the companion again", Fix: fixSweep}
	if health == Silent { // nobody knows whether it has gone, so its file stays
		f.Mend, f.Remark, f.Fix = "", x.stopped(ctx), fixNone
	}
	if way.Host != "127.0.0.1" {
		f.What = fmt.Sprintf("nobody answers at %s:%d", way.Host, way.Port)
		f.Why = "the CLI takes itself to be in a container, and looks for the editor outside"
		f.Mend, f.Remark, f.Fix = "export REMOTE_CONTAINERS=1", "or, for an editor outside, there: pollux serve --container ADDRESS", fixNone
		again, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		switch local, _ := knock(again, "127.0.0.1", way.Port, way.Token); local {
		case Healthy:
			f.Details = []string{fmt.Sprintf("the companion listens at 127.0.0.1:%d, in this container", way.Port)}
		case Silent:
			f.Details = []string{fmt.Sprintf("the companion at 127.0.0.1:%d, in this container, does not answer: %s", way.Port, x.stopped(ctx))}
		}
	}
	if way.From == "GEMINI_CLI_IDE_SERVER_PORT" {
		f.Mend, f.Remark, f.Fix = "unset GEMINI_CLI_IDE_SERVER_PORT GEMINI_CLI_IDE_WORKSPACE_PATH GEMINI_CLI_IDE_AUTH_TOKEN GEMINI_CLI_IDE_PID", "", fixNone
		f.Why = "the variables of this terminal are those of a companion that has gone"
	}
	x.add(f)
	return false
}

// stopped says what to do about a companion that does not answer.
func (x *examination) stopped(ctx context.Context) string {
	clients, silent := control.ListAll(ctx, x.o.Run)
	for _, c := range clients {
		c.Close()
	}
	if len(silent) > 0 {
		return control.SilentError(silent).Error()
	}
	return "it hangs, or is stopped (Ctrl-Z): take it up again (fg), or end it and start it again"
}

func (x *examination) refusal(way client.Way, level Level, err error) Finding {
	f := Finding{ID: "handshake", Level: level, What: fmt.Sprintf("%s does not take the CLI in: %v", way, err),
		Why: "the CLI gives up at that", Mend: x.conform(way), Remark: "start the companion again; the command says what it does wrong"}
	var status *client.StatusError
	if errors.As(err, &status) && status.Status == 403 {
		f.What = fmt.Sprintf("the companion refuses the name %s (403)", way.Host)
		f.Why, f.Mend, f.Remark = "it serves its own machine alone", "", "start it there by: pollux serve --container ADDRESS"
	}
	return f
}

// tools examines whether both tools are listed: without one, the CLI shows no diffs.
func (x *examination) tools(c *client.Client) {
	names := c.Tools()
	if slices.Contains(names, wire.ToolOpenDiff) && slices.Contains(names, wire.ToolCloseDiff) {
		x.ok("tools", "openDiff and closeDiff are offered")
		return
	}
	what := "the companion offers no tools"
	if len(names) > 0 {
		what = "the companion offers only " + strings.Join(names, ", ")
	}
	x.add(Finding{ID: "tools", Level: Fault, What: what, Why: "without openDiff and closeDiff the CLI shows no changes in the editor", Remark: "update the companion"})
}

// conform returns the command that tries the companion behind a way against the contract; "" when no command can name the companion.
func (x *examination) conform(way client.Way) string {
	c := x.r.choice
	if way.Port == 0 || way.From != "the discovery file" || c.Taken < 0 {
		return ""
	}
	return fmt.Sprintf("pollux conform --pid %.0f", c.Candidates[c.Taken].PID)
}

func describe(ide *client.Context) string {
	if ide == nil || ide.Workspace == nil {
		return "it says nothing"
	}
	files := ide.Workspace.Files
	what := plural(len(files), "open file", "open files")
	if len(files) > 0 && files[0].IsActive() {
		what += ", active: " + files[0].Path
	}
	return what
}
