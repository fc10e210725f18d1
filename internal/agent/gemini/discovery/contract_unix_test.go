//go:build unix

package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/contract"
)

var update = flag.Bool("update", false, "rewrite the vectors of contract/ with what is really seen")

// The vectors of contract/ on discovery: files, modes, bytes and variables (SPEC D-1 … D-7).
func TestContract(t *testing.T) {
	all, err := contract.PlayedBy("internal/agent/gemini/discovery")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			p := newContractPlayer(t)
			got, err := contract.Perform(a, p.dir, p.act, p.see)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := a.Rewrite(filepath.Join("..", "..", "..", "..", "contract"), got); err != nil {
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

// A contractPlayer does what the vectors say, below a folder of its own.
type contractPlayer struct {
	t     *testing.T
	dir   string
	place *Place
	held  *os.File // the discovery file, as a reader opened it
	alive map[int]bool
	says  map[int]answer // by port
	vars  []Variable
}

func newContractPlayer(t *testing.T) *contractPlayer {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &contractPlayer{t: t, dir: dir, alive: map[int]bool{}, says: map[int]answer{}}
	if err := p.environment(map[string]string{"TMPDIR": filepath.Join(dir, "tmp")}); err != nil {
		t.Fatal(err)
	}
	return p
}

// environment sets the variables that say where temporary files go, and no others of them.
func (p *contractPlayer) environment(vars map[string]string) error {
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		p.t.Setenv(name, vars[name])
		delete(vars, name)
	}
	if len(vars) > 0 {
		return fmt.Errorf("no such variable: %v", vars)
	}
	return os.MkdirAll(filepath.Join(p.dir, "tmp"), 0o700)
}

// A companionFile is what a vector says of a discovery file.
type companionFile struct {
	PID, Port int
	Roots     []string
	Token     string
	IDE       *IDE
	Body      string // instead of the content
	Name      string // instead of the name
	Alive     bool
	Says      string
}

func (f *companionFile) file() *File {
	return &File{Port: f.Port, Roots: f.Roots, Token: f.Token, IDE: f.IDE}
}

// act does what one line of a do step says.
func (p *contractPlayer) act(line string) error {
	var do struct {
		Environment  map[string]string
		Link         string
		Put, Leave   *companionFile
		Hold, Remove bool
		Sweep        *struct{ Port int }
		Terminal     *companionFile
		Container    bool
		Set          string // a variable that the terminal has
		Fails        json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.Environment != nil:
		return p.environment(do.Environment)
	case do.Link != "":
		return os.Symlink(p.dir, do.Link)
	case do.Put != nil:
		if p.place == nil {
			p.place = NewPlace(Dir(), do.Put.PID, do.Put.Port)
		}
		return p.place.Put(do.Put.file())
	case do.Hold:
		var err error
		p.held, err = os.Open(p.place.Path())
		return err
	case do.Remove:
		return p.place.Remove()
	case do.Leave != nil:
		return p.leave(do.Leave)
	case do.Sweep != nil:
		p.sweep(do.Sweep.Port)
	case do.Terminal != nil:
		var err error
		p.vars, err = Env(do.Terminal.file(), do.Terminal.PID, do.Container, func(name string) string {
			return map[string]string{do.Set: "1"}[name]
		})
		return err
	case do.Fails != nil:
		if p.act(string(do.Fails)) == nil {
			return errors.New("it did not fail")
		}
	default:
		return errors.New("nothing to do")
	}
	return nil
}

// leave puts a file there as a companion that is no more.
func (p *contractPlayer) leave(f *companionFile) error {
	says, ok := map[string]answer{"nothing": unsure, "refused": refused, "401": denied, "200": served}[f.Says]
	if !ok {
		return fmt.Errorf("no port says %q", f.Says)
	}
	p.alive[f.PID], p.says[f.Port] = f.Alive, says
	if f.Name == "" {
		f.Name = FileName(f.PID, f.Port)
	}
	if f.Body == "" {
		body, err := f.file().Encode()
		if err != nil {
			return err
		}
		f.Body = string(body)
	}
	if err := os.MkdirAll(Dir(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(Dir(), f.Name), []byte(f.Body), 0o600)
}

func (p *contractPlayer) sweep(port int) {
	s := Sweeper{
		Dir: Dir(), OwnPort: port,
		alive: func(pid int) bool { return p.alive[pid] },
		probe: func(_ context.Context, port int, _ string) answer { return p.says[port] },
	}
	if p.place != nil {
		s.Keep = p.place.Path()
	}
	s.Sweep(p.t.Context())
}

// see shows what a see step asks for.
func (p *contractPlayer) see(what string) (string, error) {
	switch what {
	case "folder":
		return Dir() + "\n", nil
	case "files":
		return contract.Listing(filepath.Join(p.dir, "tmp"))
	case "names":
		names, err := readNames(Dir())
		var b strings.Builder
		for _, name := range slices.Sorted(slices.Values(names)) {
			fmt.Fprintln(&b, name)
		}
		return b.String(), err
	case "held":
		defer p.held.Close()
		data, err := io.ReadAll(p.held)
		return string(data) + "\n", err
	case "variables":
		var b strings.Builder
		for _, v := range p.vars {
			fmt.Fprintf(&b, "%s=%s\n", v.Name, v.Value)
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("nothing to see of %q", what)
}
