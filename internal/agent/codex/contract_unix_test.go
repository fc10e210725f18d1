//go:build unix

package codex

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

var update = flag.Bool("update", false, "rewrite the vectors of contract/ with what really comes")

// SPEC CX-1, CX-2: the vectors of contract/, byte for byte.
func TestContract(t *testing.T) {
	t.Parallel()
	all, err := contract.PlayedBy("internal/agent/codex")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			got, err := contract.Play(a, target(t))
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

// target is a server for one folder, and a user in front of its editor.
func target(t *testing.T) contract.Target {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := state.New(nil)
	t.Cleanup(store.Shut)
	snapshot := func() *state.Snapshot {
		snap := *store.Snapshot()
		snap.Roots = []string{dir}
		return &snap
	}
	temp := shortTemp(t)
	s, err := Serve(temp, snapshot, func(proc.Info) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return contract.Target{
		Dir: dir,
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", Path(temp))
		},
		Editor: func(line string) error {
			var do struct {
				File, Content string
				Report        *state.Report
				Settle        bool
			}
			err := json.Unmarshal([]byte(line), &do)
			switch {
			case err != nil:
				return err
			case do.File != "":
				return os.WriteFile(filepath.Join(dir, do.File), []byte(do.Content), 0o600)
			case do.Report != nil:
				store.Report("window", *do.Report)
			case !do.Settle: // an answer is made of what is known by then
				return errors.New("nothing to do: " + line)
			}
			return nil
		},
	}
}
