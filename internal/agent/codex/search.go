package codex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

func tempDir() string { return os.TempDir() }

// home is the folder that Codex keeps its files in; it need not exist.
func home(getenv func(string) string) (string, error) {
	return settingsfile.Home(getenv, "CODEX_HOME", ".codex")
}

// SettingsPath is the user's own settings file, absolute. pollux changes nothing in it.
func SettingsPath(getenv func(string) string) (string, error) {
	home, err := home(getenv)
	return filepath.Join(home, "config.toml"), err
}

// Look replays what a Codex does that is started in dir: whether somebody answers on its socket, who that is, and what its model would
// be told.
func Look(ctx context.Context, dir string, getenv func(string) string) []finding.Finding {
	home, err := home(getenv)
	if err != nil {
		return []finding.Finding{{ID: "files", Level: finding.Fault, What: err.Error(), Why: "a companion answers where Codex has been used"}}
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		return []finding.Finding{{
			ID: "files", Level: finding.Fault, What: home + " is not there", Why: "a companion answers Codex only where it has been used", Mend: "codex", Remark: "start it once, and wait a minute",
		}}
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	socket := Path(tempDir())
	all := []finding.Finding{{ID: "files", Level: finding.OK, What: "Codex asks on " + socket}}
	c, err := Dial(ctx, socket, dir)
	if err != nil {
		f := finding.Finding{
			ID: "port", Level: finding.Fault, What: fmt.Sprintf("nobody answers there (%v)", err), Why: "Codex hears of an editor by this socket alone",
			Mend: "pollux serve", Remark: "a companion that runs already opens it within a minute, if it has the same TMPDIR",
		}
		if errors.Is(err, fs.ErrNotExist) {
			f.What = "the socket is not there"
		}
		return append(all, f)
	}
	defer c.Close()
	name := "a program that the system does not name"
	if p, ok := proc.Lookup(c.peer()); ok {
		name = fmt.Sprintf("%s (process %d)", p.Name, p.PID)
	}
	all = append(all, finding.Finding{ID: "port", Level: finding.OK, What: "it is answered by " + name})
	data, err := c.Context(ctx)
	switch {
	case errors.Is(err, errNobody):
		return append(all, finding.Finding{
			ID: "workspace", Level: finding.Fault, What: name + " does not serve " + dir, Why: "one program answers every Codex of a user, for its own folders alone",
			Remark: "stop that companion, or add the folder to its workspace; another one takes over within a minute",
		})
	case err != nil:
		return append(all, finding.Finding{
			ID: "handshake", Level: finding.Fault, What: "its answer is none that Codex understands: " + err.Error(), Why: "the model would not know what you look at", Remark: "stop that program, and start the companion again",
		})
	}
	told, err := Told(data)
	if err != nil || told == "" {
		told = "the model is told of no file"
	}
	return append(all,
		finding.Finding{ID: "context", Level: finding.OK, What: "the context has come", Details: []string{told}},
		finding.Finding{ID: "mode", Level: finding.Note, What: "Codex asks after you have typed /ide", Why: "before that its model is told nothing", Remark: "type /ide in each session"})
}

// Trials are what pollux conform tries of the wire to Codex (docs/spec/codex.md).
func Trials() []finding.Trial {
	with := func(try func(context.Context, *Conn, finding.Door) error) func(context.Context, finding.Door) error {
		return func(ctx context.Context, d finding.Door) error {
			ctx, cancel := context.WithTimeout(ctx, silence)
			defer cancel()
			c, err := Dial(ctx, d.Socket, paths.Real(d.Dir))
			if err != nil {
				return err
			}
			defer c.Close()
			return try(ctx, c, d)
		}
	}
	return []finding.Trial{
		{Name: "CX-1/a frame that is too long", About: "whoever announces 4 GB is turned away at once", Try: with(func(_ context.Context, c *Conn, _ finding.Door) error {
			_, _ = c.conn.Write([]byte{0xff, 0xff, 0xff, 0xff, '{'})
			_ = c.conn.SetDeadline(time.Now().Add(silence / 2))
			if n, err := c.conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				return errors.New("the connection stays open")
			}
			return nil
		})},
		{Name: "CX-2/initialize", About: "initialize is answered with a clientId", Try: with(func(ctx context.Context, c *Conn, _ finding.Door) error {
			r, err := c.ask(ctx, "initialize", "")
			v, _ := r.Value.(map[string]any)
			if id, _ := v["clientId"].(string); err != nil || r.Result != "success" || id == "" {
				return fmt.Errorf("it answers %+v (%v)", r, err)
			}
			return nil
		})},
		{Name: "CX-2/ide-context", About: "the answer holds openTabs, and no file of another folder", Try: with(func(ctx context.Context, c *Conn, _ finding.Door) error {
			data, err := c.Context(ctx)
			if err != nil {
				return err
			}
			_, err = Told(data)
			return err
		})},
		{Name: "CX-2/another project", About: "of a folder that it does not serve nothing is told", Try: with(func(ctx context.Context, c *Conn, d finding.Door) error {
			r, err := c.ask(ctx, methodContext, filepath.Join(filepath.VolumeName(d.Dir)+string(filepath.Separator), "pollux-conform-elsewhere"))
			if err != nil || r.Error != "no-client-found" {
				return fmt.Errorf("it answers %+v (%v)", r, err)
			}
			return nil
		})},
		{Name: "CX-2/an unknown method", About: "what it does not know is an error, and the connection lives on", Try: with(func(ctx context.Context, c *Conn, _ finding.Door) error {
			r, err := c.ask(ctx, "pollux-conform", "")
			if err != nil || r.Result != "error" {
				return fmt.Errorf("it answers %+v (%v)", r, err)
			}
			_, err = c.ask(ctx, "initialize", "")
			return err
		})},
	}
}

// LetsIn is where a process answers Codex; ok is false where it does not.
func LetsIn(pid int) (d finding.Door, ok bool) {
	if ownpipe.Scheme != "unix" {
		return d, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	socket := Path(tempDir())
	c, err := Dial(ctx, socket, "")
	if err != nil {
		return d, false
	}
	defer c.Close()
	return finding.Door{Socket: socket}, pid > 0 && c.peer() == pid
}
