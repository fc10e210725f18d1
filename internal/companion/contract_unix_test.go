//go:build unix

package companion

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/control"
)

var update = flag.Bool("update", false, "rewrite the vectors of contract/ with what is really seen")

// The vectors of contract/ that take a whole companion: where it listens, its
// token, its process and its file (SPEC T-2, A-1, D-2, D-4, D-5).
func TestContract(t *testing.T) {
	all, err := contract.PlayedBy("internal/companion")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			p := &contractPlayer{t: t}
			p.o, _, _ = options(t)
			got, err := contract.Perform(a, filepath.Dir(p.o.Roots[0]), p.act, p.see)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := a.Rewrite(filepath.Join("..", "..", "contract"), got); err != nil {
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

// A contractPlayer starts and stops companions as the vectors say, one at a time.
type contractPlayer struct {
	t    *testing.T
	o    Options
	c    *Companion
	last control.Connection // whose token was last looked at
}

// act does what one line of a do step says.
func (p *contractPlayer) act(line string) error {
	var do struct {
		Start *struct {
			PID   int
			Roots []string
		}
		Roots []string
		Stop  bool
		Age   string // of the last one's record
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.Start != nil:
		p.o.PID = do.Start.PID
		if do.Start.Roots != nil {
			p.o.Roots = do.Start.Roots
		}
		p.c = start(p.t, p.o)
		return nil
	case do.Roots != nil:
		return p.c.SetRoots(do.Roots)
	case do.Stop:
		return p.c.Stop(p.t.Context())
	case do.Age != "":
		by, err := time.ParseDuration(do.Age)
		return errors.Join(err, p.age(by))
	}
	return errors.New("nothing to do")
}

// age makes the record of the last companion older.
func (p *contractPlayer) age(by time.Duration) error {
	records, err := filepath.Glob(filepath.Join(p.o.Dirs.State, "resume", "*.json"))
	then := time.Now().Add(-by)
	for _, record := range records {
		err = errors.Join(err, os.Chtimes(record, then, then))
	}
	return err
}

// see shows what a see step asks for.
func (p *contractPlayer) see(what string) (string, error) {
	switch what {
	case "files":
		text, err := contract.Listing(discovery.TempDir())
		port := strconv.Itoa(p.c.Info().Port)
		return strings.NewReplacer(
			fmt.Sprintf("-%d-%s.json", os.Getpid(), port), "-{{pid}}-{{port}}.json",
			"-"+port+".json", "-{{port}}.json", `"port":`+port+",", `"port":{{port}},`,
			p.c.Connection().Token, "{{token}}").Replace(text), err
	case "listeners":
		return p.listeners()
	case "token":
		return p.token()
	}
	return "", fmt.Errorf("nothing to see of %q", what)
}

// listeners says at which addresses of this machine somebody answers on the port.
func (p *contractPlayer) listeners() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	answers := func(ip string) bool {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, strconv.Itoa(p.c.Info().Port)), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	others := false
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			others = others || answers(n.IP.String())
		}
	}
	return fmt.Sprintf("127.0.0.1: %v\n127.0.0.2: %v\n::1: %v\nother addresses of this machine: %v\n",
		answers("127.0.0.1"), answers("127.0.0.2"), answers("::1"), others), nil
}

// token says how long the newest token is and whether it and the port are the last companion's.
func (p *contractPlayer) token() (string, error) {
	conn := p.c.Connection()
	raw, err := base64.RawURLEncoding.DecodeString(conn.Token)
	is := "new"
	switch {
	case conn.Token == p.last.Token && conn.Port == p.last.Port:
		is = "as before, and so is the port"
	case conn.Token == p.last.Token:
		is = "as before, with another port"
	case conn.Port == p.last.Port:
		is = "new, and the port is as before"
	}
	p.last = conn
	return fmt.Sprintf("%d bits, %s\n", 8*len(raw), is), err
}
