package sandbox

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/permission"
)

// holding is a program that fills socket buffers and keeps them; its first argument says how.
const holding = `
import os, socket, sys, time
def fill(*all):
    for s in all:
        s.setblocking(False)
        try:
            while s.send(b"x" * 65536): pass
        except OSError: pass
def pairs(n, kind=socket.SOCK_STREAM):
    keep = []
    for _ in range(n):
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        for s in (a, b): s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 20)
        fill(a, b)
        keep.append((a, b))
    return keep
def tcp(n):
    keep = []
    l = socket.create_server(("127.0.0.1", 0), backlog=n)
    for _ in range(n):
        a = socket.create_connection(l.getsockname())
        b, _ = l.accept()
        for s in (a, b): s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        fill(a, b)
        keep.append((a, b))
    return keep
def udp(n):
    keep = []
    for _ in range(n):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        for _ in range(64): s.sendto(b"x" * 8192, s.getsockname())
        keep.append(s)
    return keep
def flying(n):
    keep = [socket.socketpair() for _ in range(4)]
    for i in range(n):
        a, b = socket.socketpair()
        fill(a, b)
        try: socket.send_fds(keep[i % 4][0], [b"x"], [a.fileno(), b.fileno()])
        except OSError: keep.append((a, b)); continue
        a.close(); b.close()
    return keep
keep = eval(sys.argv[1])
if sys.argv[2:] == ["ok"]:
    print("fine")
else:
    time.sleep(1000)
`

// Memory that grows towards its limit is looked at sooner, the nearer it is; the cost of looking stays bounded (SPEC S-1).
func TestNextSample(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		before, held int64
		since, took  time.Duration
		want         time.Duration
	}{
		"at rest":                    {500, 500, 25 * ms, 0, 25 * ms},
		"at rest beside the limit":   {1023, 1023, 25 * ms, 0, 25 * ms},
		"shrinking":                  {900, 100, 25 * ms, 0, 25 * ms},
		"far away":                   {0, 100, 25 * ms, 0, 25 * ms},
		"half of the rest":           {424, 824, 100 * ms, 0, 25 * ms},
		"fast, and near":             {924, 974, 25 * ms, 0, 12500 * time.Microsecond},
		"faster":                     {24, 1004, 25 * ms, 0, 2 * ms},
		"many processes, at rest":    {500, 500, 25 * ms, 5 * ms, 100 * ms},
		"many processes, and near":   {824, 924, 25 * ms, 2 * ms, 12500 * time.Microsecond},
		"many processes, very near":  {824, 1020, 25 * ms, 4 * ms, 20 * ms},
		"slow samples":               {500, 500, 25 * ms, time.Second, 250 * ms},
		"slow samples, and near":     {824, 1020, 250 * ms, time.Second, 250 * ms},
		"no time since the last one": {0, 1000, 0, 0, 2 * ms},
	} {
		if got := nextSample(1024, c.before, c.held, c.since, c.took); got.Round(ms/2) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestSocketBuffers: what sockets hold counts as memory, whatever their kind and wherever they are (SPEC S-1).
func TestSocketBuffers(t *testing.T) {
	for name, test := range map[string]struct {
		how   string
		hosts bool
	}{
		"pairs":             {"pairs(450)", false},
		"packets":           {"pairs(450, socket.SOCK_SEQPACKET)", false},
		"children's":        {"[pairs(100) if os.fork() == 0 else 0 for _ in range(4)]", false},
		"on their way":      {"flying(480)", false},
		"pairs, with hosts": {"pairs(450)", true},
		"TCP":               {"tcp(450)", true},
		"UDP":               {"udp(900)", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Policy{}
			if test.hosts {
				p.Hosts = hosts(t, "example.com")
			}
			r := runIn(t, New(nil), p, Command{Args: []string{"python3", "-c", holding, test.how}, Limits: Limits{Memory: 128 * mib, Time: 20 * time.Second}})
			if r.Limit == nil || r.Limit.Kind != limitMemory {
				t.Errorf("%d, %v\n%s", r.Code, r.Limit, r.Stderr)
			}
		})
	}
	t.Run("honest", func(t *testing.T) {
		r := runIn(t, New(nil), Policy{}, Command{Args: []string{"python3", "-c", holding, "pairs(100)", "ok"}, Limits: Limits{Memory: 128 * mib}})
		if string(r.Stdout) != "fine\n" {
			t.Errorf("%d, %v\n%s", r.Code, r.Limit, r.Stderr)
		}
	})
}

// TestDisk: what is written to disks in all has a limit, however it is written (SPEC S-1).
func TestDisk(t *testing.T) {
	for name, script := range map[string]string{
		"many files":      `i=0; while :; do head -c 4000000 /dev/zero >f$i; i=$((i+1)); done`,
		"by children":     `i=0; while :; do (head -c 4000000 /dev/zero >f$i) & wait; i=$((i+1)); done`,
		"again and again": `while :; do head -c 4000000 /dev/zero >f; sync f; done`,
		"and removed":     `while :; do head -c 4000000 /dev/zero >f; sync f; rm f; done`,
		"by an orphan":    `(setsid sh -c 'i=0; while :; do head -c 4000000 /dev/zero >f$i; i=$((i+1)); done' &); sleep 1000`,
		"as memory": `exec python3 -c 'import mmap,os,time
for i in range(1000):
    f = os.open("f%d" % i, os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(f, 0, 4000000)
    m = mmap.mmap(f, 4000000)
    m[::4096] = b"x" * len(m[::4096])
time.sleep(1000)'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			r := runIn(t, p.s, Policy{Write: permission.Workspace}, Command{
				Args: []string{"sh", "-c", "cd " + p.workspace + " && " + script}, Workspace: p.workspace,
				Limits: Limits{Disk: 64 * mib, Time: 30 * time.Second},
			})
			if r.Limit == nil || r.Limit.Kind != limitDisk {
				t.Errorf("%d, %v\n%s", r.Code, r.Limit, r.Stderr)
			}
			files, _ := filepath.Glob(filepath.Join(p.workspace, "f*"))
			if len(files) > 500 {
				t.Errorf("%d files of 4 MB with a limit of 64 MiB", len(files))
			}
		})
	}
	t.Run("honest", func(t *testing.T) {
		p := newPlace(t)
		r := runIn(t, p.s, Policy{Write: permission.Workspace}, Command{Args: []string{"sh", "-c", fmt.Sprintf("cd %s; head -c 4000000 /dev/zero >f; fallocate -l 1000000000 g; stat -c %%s f g", p.workspace)}, Workspace: p.workspace, Limits: Limits{Disk: 64 * mib}})
		if string(r.Stdout) != "4000000\n0\n" || r.Limit != nil {
			t.Errorf("%q %v %s", r.Stdout, r.Limit, r.Stderr)
		}
	})
}
