package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent/copilot"
	"github.com/pollux-companion/pollux/internal/agent/gemini"
	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/workspace"
)

var update = flag.Bool("update", false, "rewrite the vectors of contract/ with what really comes")

// The vectors of contract/ on the wire: T, A, C and F as the CLI sees them, byte for byte.
func TestContract(t *testing.T) {
	t.Parallel()
	all, err := contract.PlayedBy(contract.Wire)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, a.Settings)
			got, err := contract.Play(a, u.target(a.Agent()))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := a.Rewrite(filepath.Join("..", "..", "..", "contract"), got); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(a.Steps, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", a.About, diff)
			}
		})
	}
}

// A user plays the editor steps of the vectors.
type user struct {
	*bench
	told atomic.Pointer[state.Snapshot] // the newest context that the sessions have heard
}

func newUser(t *testing.T, settings map[string]string) *user {
	var u user
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.New([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u.bench = newBench(t, func(o *mcp.Options) {
		o.Store = state.New(&state.Options{Keep: w.Sharing})
		o.Agents[0].Dialect = gemini.Dialect{LegacyDiffClosed: settings["legacyDiffClosed"] != ""}
		switch settings["agent"] {
		case "claude":
			withClaude(o)
		case "copilot":
			o.Agents = append(o.Agents, mcp.Agent{
				Name: "copilot", Label: copilot.Label, Token: copilotToken, Private: true, TokenHeader: copilot.TokenHeader, TokenScheme: copilot.TokenScheme,
				Dialect: &copilot.Dialect{Snapshot: o.Store.Snapshot},
			})
		}
		if name := settings["extraHost"]; name != "" {
			o.ExtraHosts = []string{name}
		}
		if grace, err := time.ParseDuration(settings["grace"]); err == nil {
			o.Grace = grace
		}
		if settings["writeFile"] != "" {
			o.WriteFile = w.WriteFile
		}
	})
	u.dir = dir
	t.Cleanup(u.store.Subscribe(func(s *state.Snapshot) { u.told.Store(s) })) // after the server, and so called after it
	return &u
}

const copilotToken = "copilots-token-that-is-as-long-as-a-real-one-is"

// target is where a vector of that agent's is played.
func (u *user) target(agent string) contract.Target {
	u.t.Helper()
	target := contract.Target{Addr: u.addr, Token: testToken, Dir: u.dir, Editor: u.act, Patience: patience}
	switch agent {
	case "claude":
		target.Token = claudeToken
	case "copilot":
		dir, err := os.MkdirTemp("", "pollux-") // a short path, for the socket
		if err != nil {
			u.t.Fatal(err)
		}
		u.t.Cleanup(func() { _ = os.RemoveAll(dir) })
		ln, err := ownpipe.ListenIn([]string{filepath.Join(dir, "run")}, ".agents")
		if err != nil {
			u.t.Fatal(err)
		}
		go func() { _ = u.server.Serve(ln) }() // ends with the bench
		target.Token = copilotToken
		target.Dial = func(ctx context.Context) (net.Conn, error) {
			return ownpipe.Dial(ctx, ownpipe.Name(ln.Addr().String()))
		}
	}
	return target
}

// act does what one line of an editor step says.
func (u *user) act(line string) error {
	var do struct {
		File, Content, Remove string
		Report                *state.Report
		Touch, Settle, Reject bool
		Accept, Trust         json.RawMessage
		Edit, Refuse, Policy  *string
		Fails                 json.RawMessage
		Views                 *int
		Mention               *mcp.Mention
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.File != "":
		return os.WriteFile(filepath.Join(u.dir, do.File), []byte(do.Content), 0o600)
	case do.Remove != "":
		return os.Remove(filepath.Join(u.dir, do.Remove))
	case do.Report != nil:
		u.store.Report("window", *do.Report)
	case do.Touch:
		u.store.Touch()
	case do.Settle:
		eventually(u.t, "the newest context is out", func() bool {
			last := u.told.Load()
			return last != nil && reflect.DeepEqual(*last, *u.store.Snapshot())
		})
	case do.Trust != nil:
		var trusted *bool
		_ = json.Unmarshal(do.Trust, &trusted)
		u.store.SetTrust(trusted)
	case do.Refuse != nil:
		u.editor.mu.Lock()
		u.editor.refuse = errors.New(*do.Refuse)
		u.editor.mu.Unlock()
	case do.Policy != nil:
		u.registry.SetRule(review.Rule{Mode: review.Mode(*do.Policy)})
	case do.Views != nil:
		eventually(u.t, fmt.Sprintf("views that are open: %d", *do.Views), func() bool {
			u.editor.mu.Lock()
			defer u.editor.mu.Unlock()
			return len(u.editor.shown)-u.editor.closed == *do.Views && len(u.registry.Pending()) == *do.Views
		})
	case do.Mention != nil:
		sessions := u.server.Sessions()
		return u.server.Mention(sessions[len(sessions)-1].ID, *do.Mention)
	case do.Fails != nil:
		if err := u.act(string(do.Fails)); err == nil {
			return errors.New("it did not fail")
		}
	default:
		return u.decide(do.Accept, do.Reject, do.Edit)
	}
	return nil
}

// decide acts on the oldest open diff.
func (u *user) decide(accept json.RawMessage, reject bool, edit *string) error {
	pending := u.registry.Pending()
	if len(pending) == 0 {
		return errors.New("no diff is open")
	}
	id, told := pending[0].ID(), u.server.Told()
	var err error
	switch {
	case reject:
		err = u.registry.Reject(id)
	case edit != nil:
		_, err = u.registry.Edit(id, review.Edit{Text: *edit})
		return err
	case accept != nil:
		var content *string
		if err = json.Unmarshal(accept, &content); err == nil {
			err = u.registry.Accept(id, pending[0].Now().Seen, content)
		}
	default:
		return errors.New("nothing to do")
	}
	if err == nil && !pending[0].Proposal().Waits { // a quick user's outcome may be told by the call that opened the diff
		eventually(u.t, "the session hears of it", func() bool { return u.server.Told() > told })
	}
	return err
}
