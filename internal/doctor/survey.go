// Package doctor says why an agent does not connect. It replays the agent's
// own search for a companion step by step and tries the companion that the
// agent would take. Each finding has an explanation, and the command that mends it.
package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Health is the state of a companion.
type Health string

// The states of health.
const (
	Healthy    Health = "ok"
	Dead       Health = "dead"          // nobody listens at its port any more
	Stranger   Health = "stranger"      // another program listens there, and does not know the companion's token
	Silent     Health = "no answer"     // it took longer than the limit
	Unreadable Health = "unreadable"    // a CLI cannot use the file
	Relay      Health = "relay"         // a command that a CLI starts; nothing to try
	Unlisted   Health = "unlisted"      // it runs, without a discovery file that a CLI of this shell sees
	limit             = 2 * time.Second // for one request to a companion
)

// A Companion is one of this user's on this machine, or the file that it left.
type Companion struct {
	Editor    string    `json:"editor"`              // as it introduces itself, "" when it does not
	PID       int       `json:"pid"`                 // the editor's process, from the file's name
	Port      int       `json:"port,omitempty"`      // 0 when not known
	Workspace []string  `json:"workspace"`           // absolute
	Sessions  *int      `json:"sessions"`            // connected CLIs; null when it does not tell
	Diffs     *int      `json:"diffs"`               // open ones; null when it does not tell
	Since     time.Time `json:"since,omitzero"`      // its start, or the file's time
	Health    Health    `json:"health"`              //
	Keeper    bool      `json:"keeper,omitempty"`    // its editor has ended; it goes on serving the CLIs that were connected
	Note      string    `json:"note,omitempty"`      // what that means, when it is not obvious
	File      string    `json:"file,omitempty"`      // its discovery file, "" for none
	Version   string    `json:"version,omitempty"`   // of pollux's own
	Here      bool      `json:"here"`                // it serves the folder that was asked for
	Taken     bool      `json:"taken"`               // it is the one that a CLI would take; set by Mark
	TakenBy   []string  `json:"takenBy,omitempty"`   // other agents that would take it, as people call them; set by Mark
	CLIs      []string  `json:"clis,omitempty"`      // the connected CLIs, by their labels
	Askers    []string  `json:"askers,omitempty"`    // the agents that ask by pollux mcp, as they name themselves
	Elsewhere bool      `json:"elsewhere,omitempty"` // its file lies in another temp folder than this shell's
	// Troubles are the problems that a pollux companion runs with.
	Troubles []control.Trouble `json:"troubles,omitempty"`
}

// Survey finds every companion of this user: pollux's by the control channel, and all by the discovery files in folders
// (the first one is this shell's). here is the folder for Companion.Here. It waits for slow ones together, two seconds for each
// of three questions: who is there, who listens at a file's port, what it tells of itself.
func Survey(ctx context.Context, run, folders []string, here string) []Companion {
	clients, silent := control.ListAll(ctx, run)
	probing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		i int
		c Companion
	}
	var files []Companion
	for i, folder := range folders {
		for _, c := range readFolder(folder) {
			c.Elsewhere = i > 0
			files = append(files, c)
		}
	}
	results := make(chan result, len(files))
	for i := range files {
		go func() {
			c := files[i]
			c.try(probing)
			results <- result{i, c}
		}()
	}
	for range files {
		r := <-results
		files[r.i] = r.c
	}
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, c := range clients {
		files = merge(asking, files, c)
		c.Close()
	}
	files = wakeUp(files, silent)
	for i := range files {
		files[i].Here = slices.ContainsFunc(files[i].Workspace, func(root string) bool { return paths.Within(root, here) })
	}
	slices.SortStableFunc(files, func(a, b Companion) int {
		for _, pair := range [][2]bool{{a.Here, b.Here}, {a.alive(), b.alive()}} {
			if pair[0] != pair[1] {
				if pair[0] {
					return -1
				}
				return 1
			}
		}
		return b.Since.Compare(a.Since)
	})
	return files
}

// wakeUp names the processes of companions that do not answer, and says what to do.
func wakeUp(files []Companion, silent []control.Silent) []Companion {
	if len(silent) == 0 {
		return files
	}
	hint, listed := control.SilentError(silent).Error(), false
	for i := range files {
		f := &files[i]
		full := slices.Contains(silent, control.Silent{PID: f.PID, Full: true})
		switch {
		case f.Health == Silent:
			f.Note, listed = f.Note+"; "+hint, true
		case full && f.alive(): // its port answers
			f.Note, listed = hint, true
		}
	}
	if !listed {
		files = append(files, Companion{PID: silent[0].PID, Workspace: []string{}, Health: Silent, Note: hint})
	}
	return files
}

// Mark notes which of Survey's companions a CLI of a world would take (SPEC K-1), alive or not, and puts it
// first. It marks none when the CLI would not try to connect. It also notes which other agents would take which.
func Mark(found []Companion, w *client.World) {
	w = client.Complete(w)
	for _, a := range agent.All() {
		if a.Choose == nil {
			continue
		}
		c, err := Choose(a, w)
		if err != nil || c.Taken < 0 {
			continue
		}
		port := c.Candidates[c.Taken].Lock.Port
		if i := slices.IndexFunc(found, func(f Companion) bool { return f.Port == port && port != 0 && f.alive() }); i >= 0 {
			found[i].TakenBy = append(found[i].TakenBy, a.Label)
		}
	}
	choice := client.Choose(w)
	if choice.Refusal(w) != nil {
		return
	}
	taken := func(c Companion) bool { return false }
	if ways := choice.Ways(w); choice.Taken >= 0 {
		file := filepath.Join(choice.Folder, choice.Candidates[choice.Taken].Name)
		taken = func(c Companion) bool { return c.File == file }
	} else if len(ways) > 0 && ways[0].Port != 0 {
		taken = func(c Companion) bool { return c.Port == ways[0].Port }
	}
	if i := slices.IndexFunc(found, taken); i >= 0 {
		c := found[i]
		c.Taken = true
		copy(found[1:i+1], found[:i])
		found[0] = c
	}
}

func (c *Companion) alive() bool {
	return c.Health == Healthy || c.Health == Unlisted || c.Health == Relay
}

// readFolder makes a Companion of every discovery file, even of useless ones.
func readFolder(folder string) []Companion {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var all []Companion
	for _, e := range entries {
		pid, port, ok := discovery.ParseName(e.Name())
		if !ok {
			continue
		}
		c := Companion{PID: pid, Port: port, File: filepath.Join(folder, e.Name()), Workspace: []string{}}
		if info, err := e.Info(); err == nil {
			c.Since = info.ModTime()
		}
		data, err := safefile.ReadPrivate(c.File, 1<<20)
		if err != nil {
			if errors.Is(err, safefile.ErrNotPrivate) && strings.Contains(err.Error(), "belongs to") {
				continue // another user's companion
			}
			c.Health, c.Note = Unreadable, err.Error()
			all = append(all, c)
			continue
		}
		f, err := discovery.Parse(data)
		if err != nil {
			c.Health, c.Note = Unreadable, err.Error()
			all = append(all, c)
			continue
		}
		c.fill(f)
		all = append(all, c)
	}
	return all
}

func (c *Companion) fill(f *discovery.File) {
	if f.IDE != nil {
		c.Editor = f.IDE.DisplayName
	}
	c.Port = f.Port
	if f.Roots != nil {
		c.Workspace = f.Roots
	}
	if f.Stdio != nil && f.Port == 0 {
		c.Health, c.Note = Relay, "a CLI starts "+f.Stdio.Command
	}
}

// try asks the port of a file whether a listener there knows the token.
func (c *Companion) try(ctx context.Context) {
	if c.Health != "" {
		return
	}
	data, err := safefile.ReadPrivate(c.File, 1<<20)
	if err != nil {
		c.Health, c.Note = Dead, "the file has gone meanwhile"
		return
	}
	f, err := discovery.Parse(data)
	if err != nil {
		c.Health, c.Note = Unreadable, err.Error()
		return
	}
	token := f.Token
	if !proc.Alive(c.PID) {
		token = "" // whoever listens there now has no claim to the token
	}
	c.Health, c.Note = knock(ctx, "127.0.0.1", c.Port, token)
	if token == "" && f.Token != "" && c.Health == Healthy {
		c.Health, c.Note = Stranger, fmt.Sprintf("process %d has ended, and something else listens at its port", c.PID)
	}
	if c.Health == Dead && !proc.Alive(c.PID) {
		c.Note = fmt.Sprintf("process %d has ended and left the file behind", c.PID)
	}
}

// maxHeader bounds what knock reads, in bytes.
const maxHeader = 64 << 10

// knock asks without opening a session. On loopback it sends the token only to a process of this user (SPEC A-5).
func knock(ctx context.Context, host string, port int, token string) (Health, string) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, fmt.Sprint(port)))
	switch {
	case ctx.Err() != nil:
		return Silent, fmt.Sprintf("port %d does not answer within %v", port, limit)
	case err != nil:
		return Dead, fmt.Sprintf("nobody listens at port %d", port)
	}
	defer conn.Close()
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Healthy, ""
	}
	if addr, ok := conn.RemoteAddr().(*net.TCPAddr); ok && addr.IP.IsLoopback() {
		switch err := proc.CheckServer(conn); {
		case errors.Is(err, proc.ErrForeign):
			return Stranger, fmt.Sprintf("what listens at port %d is another user's, and was told nothing", port)
		case err != nil && proc.TellsPeers() != nil:
			return Healthy, fmt.Sprintf("whose the listener at port %d is cannot be told here, so the token was not tried", port)
		case err != nil:
			return Stranger, fmt.Sprintf("what listens at port %d does not speak HTTP", port)
		}
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s:%d\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n", host, port, token)
	res, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxHeader)), nil) //nolint:bodyclose // closing it would wait for all of it
	switch {
	case err != nil && ctx.Err() != nil:
		return Silent, fmt.Sprintf("something listens at port %d and does not answer within %v", port, limit)
	case err != nil:
		return Stranger, fmt.Sprintf("what listens at port %d does not speak HTTP", port)
	}
	if res.StatusCode == http.StatusUnauthorized {
		return Stranger, fmt.Sprintf("what listens at port %d does not know the file's token", port)
	}
	return Healthy, ""
}

// merge adds what pollux's own companion tells about itself.
func merge(ctx context.Context, files []Companion, c *control.Client) []Companion {
	own, err := c.Connection(ctx)
	at := slices.IndexFunc(files, func(f Companion) bool { return f.Port == own.Port && f.Port != 0 && f.Health == Healthy })
	if at < 0 {
		at = len(files)
		files = append(files, Companion{
			Editor: c.Status.Editor, PID: c.Status.PID, Port: own.Port, Workspace: c.Status.Roots, Health: Unlisted,
			Note: "its discovery file lies in another temp folder, or is gone",
		})
	}
	f := &files[at]
	if err != nil {
		f.Health, f.Note = Silent, "the control channel says: "+err.Error()
	}
	if f.Keeper = c.Status.Keeper; f.Keeper && f.Note == "" {
		f.Note = "a keeper: its editor was closed, and CLIs are connected; an editor opened there takes over, pollux stop ends it"
	}
	f.Version, f.Since, f.Troubles = c.Status.Version, c.Status.Started, c.Status.Troubles
	told := map[string]string{"asks": " (not told what you look at until you agree)", "never": " (never told what you look at)"}
	if sessions, err := c.Sessions(ctx); err == nil {
		n := len(sessions)
		f.Sessions = &n
		for _, s := range sessions {
			in := ""
			if s.Folder != "" {
				in = " in " + filepath.Base(s.Folder)
			}
			f.CLIs = append(f.CLIs, s.Label+in+told[s.Told])
		}
	}
	for _, a := range c.Status.Askers {
		f.Askers = append(f.Askers, strings.TrimSpace(a.Name+" "+a.Version))
	}
	if diffs, err := c.Diffs(ctx); err == nil {
		n := len(diffs)
		f.Diffs = &n
	}
	return files
}

// Folders returns the discovery folders to look into: this shell's first; with all, also
// those of other temp folders that this user's programs commonly have.
func Folders(all bool) []string {
	own := (*client.World)(nil).Folder()
	folders := []string{own}
	if !all {
		return folders
	}
	for _, temp := range commonTemps() {
		matches, _ := filepath.Glob(discovery.DirIn(temp))
		for _, m := range matches {
			if !slices.Contains(folders, m) {
				folders = append(folders, m)
			}
		}
	}
	return folders
}
