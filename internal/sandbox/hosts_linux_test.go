package sandbox

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/escapes"
)

// need returns the path of a program, or skips the test if the machine lacks it.
func need(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if peers.Required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// A web replaces the internet: example.com with TLS and without, and a repository on git.example.com.
type web struct {
	s         *Sandbox
	workspace string
	env       []string

	mu      sync.Mutex
	dialled []string
}

func newWeb(t testing.TB) *web {
	t.Helper()
	w := &web{workspace: filepath.Join(paths.Real(t.TempDir()), "w")}
	site := http.NewServeMux()
	site.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) { fmt.Fprintf(rw, "hello from %s", r.Host) })
	site.HandleFunc("/evil", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://evil.example.org/", http.StatusFound)
	})
	site.HandleFunc("/big", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(rw, zeros{}, 256*mib) })
	repo := filepath.Join(t.TempDir(), "repo.git")
	site.Handle("/repo.git/", http.StripPrefix("/repo.git", http.FileServer(http.Dir(repo))))
	plain, secure := httptest.NewServer(site), httptest.NewTLSServer(site)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	ca := filepath.Join(w.workspace, "ca.pem")
	if err := errors.Join(os.Mkdir(w.workspace, 0o700), os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"SSL_CERT_FILE=" + ca, "CURL_CA_BUNDLE=" + ca, "NODE_EXTRA_CA_CERTS=" + ca, "GIT_SSL_CAINFO=" + ca}
	w.s = New(&Options{Dial: func(ctx context.Context, _, hostPort string) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, hostPort)
		w.mu.Unlock()
		to := map[string]string{"example.com:80": plain.Listener.Addr().String(), "example.com:443": secure.Listener.Addr().String(), "git.example.com:80": plain.Listener.Addr().String()}[hostPort]
		if to == "" {
			return nil, errors.New("no such host")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}})
	makeRepo(t, repo)
	return w
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// makeRepo makes a repository that any web server can serve.
func makeRepo(t testing.TB, dir string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		return // TestHosts's own subtest says so
	}
	work := t.TempDir()
	for _, args := range [][]string{{"init", "-q", work}, {"-C", work, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "first"}, {"clone", "-q", "--bare", work, dir}, {"-C", dir, "update-server-info"}} {
		cmd := exec.Command(git, args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
}

// TestHosts: real programs reach what the policy names, through the proxy and without proxy variables, and nothing
// else (SPEC E-2).
func TestHosts(t *testing.T) {
	w := newWeb(t)
	policy := Policy{Read: permission.Workspace, Hosts: hosts(t, "example.com", "http://git.example.com")}
	noProxy := append(slices.Clone(w.env), "HTTP_PROXY=", "HTTPS_PROXY=", "http_proxy=", "https_proxy=", "ALL_PROXY=", "all_proxy=", "NODE_USE_ENV_PROXY=")
	python := `import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())`
	node := `fetch(process.argv[1]).then(r => r.ok ? r.text() : Promise.reject(r.status)).then(console.log, e => { console.error(e); process.exit(1) })`
	for _, program := range []struct {
		name string
		args []string
	}{
		{"curl", []string{"curl", "-sSfL", "--max-time", "60"}},
		{"python3", []string{"python3", "-c", python}},
		{"node", []string{"node", "-e", node}},
	} {
		t.Run(program.name, func(t *testing.T) {
			need(t, program.name)
			for _, env := range [][]string{w.env, noProxy} {
				for _, test := range []struct {
					url    string
					ok     bool
					denied string
				}{
					{"http://example.com/", true, ""},
					{"https://example.com/", true, ""},
					{"http://evil.example.org/", false, "evil.example.org"},
					{"https://evil.example.org/", false, "evil.example.org"},
					{"http://example.com/evil", false, "evil.example.org"},
					{"http://sub.example.com/", false, "sub.example.com"},
				} {
					r := runIn(t, w.s, policy, Command{Args: append(slices.Clone(program.args), test.url), Workspace: w.workspace, Env: env})
					if ok := r.Code == 0; ok != test.ok || ok && !strings.Contains(string(r.Stdout), "hello from example.com") {
						t.Errorf("%s (%d variables): %d %s%s", test.url, len(env), r.Code, r.Stdout, r.Stderr)
					}
					if test.denied != "" && !slices.ContainsFunc(r.Denials, func(d Denial) bool { return d.Host == test.denied }) {
						t.Errorf("%s (%d variables): denials %+v", test.url, len(env), r.Denials)
					}
				}
			}
		})
	}
	t.Run("git", func(t *testing.T) {
		need(t, "git")
		for _, env := range [][]string{w.env, noProxy} {
			r := runIn(t, w.s, policy, Command{Args: []string{"git", "clone", "-q", "http://git.example.com/repo.git", "/tmp/r"}, Workspace: w.workspace, Env: env})
			if r.Code != 0 {
				t.Errorf("%d %s", r.Code, r.Stderr)
			}
		}
	})
	for _, name := range w.dialled {
		if !slices.Contains([]string{"example.com:80", "example.com:443", "git.example.com:80"}, name) {
			t.Errorf("%s was dialled", name)
		}
	}
}

// TestRawAddresses: contacts to addresses are refused at every port, in IPv4 and IPv6, directly and through the
// proxy, and reported with the address (SPEC E-2, S-3). Without IPv6 in the kernel there is nothing to report for it.
func TestRawAddresses(t *testing.T) {
	python := need(t, "python3")
	var mu sync.Mutex
	var told []Denial
	s := New(&Options{Event: func(d Denial) { mu.Lock(); told = append(told, d); mu.Unlock() },
		Dial: func(_ context.Context, _, hostPort string) (net.Conn, error) {
			return nil, errors.New("no internet: " + hostPort)
		}})
	script := `
import socket, urllib.request
try: socket.socket(socket.AF_INET6).bind(("::1", 0))
except OSError: print("no version 6", end="")
for host, port, kind in [("93.184.216.34", 443, 1), ("93.184.216.34", 8080, 1), ("169.254.169.254", 80, 1), ("10.0.0.1", 22, 1), ("8.8.8.8", 53, 2), ("2606:4700::1111", 443, 1), ("2606:4700::1111", 853, 1), ("example.com", 8443, 1), ("127.0.0.1", 9999, 1)]:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=kind)[0]
    try:
        s = socket.socket(family, kind)
        s.settimeout(30)
        s.connect(address)
        s.send(b"hello\r\n\r\n")
        if kind == 1 and s.recv(1): print("reached", host, port)
    except OSError: pass
    s.close()
try: urllib.request.urlopen("http://93.184.216.35/")
except OSError: pass
`
	r := runIn(t, s, Policy{Hosts: hosts(t, "example.com")}, Command{Args: []string{python, "-c", script}})
	want := []string{"10.0.0.1 22", "169.254.169.254 80", "2606:4700::1111 443", "2606:4700::1111 853", "8.8.8.8 53", "93.184.216.34 443", "93.184.216.34 8080", "93.184.216.35 80", "example.com 8443"}
	if string(r.Stdout) == "no version 6" {
		t.Log("no version 6 on this machine: version 4 alone")
		r.Stdout, want = nil, slices.Delete(want, 2, 4)
	}
	if r.Code != 0 || len(r.Stdout) > 0 {
		t.Errorf("%d %s%s", r.Code, r.Stdout, r.Stderr)
	}
	var got []string
	for _, d := range r.Denials {
		got = append(got, fmt.Sprintf("%s %d", d.Host, d.Port))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("denied: %q\nwant %q", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != len(r.Denials) {
		t.Errorf("%d events, %d denials", len(told), len(r.Denials))
	}
}

// TestTraffic: what all connections carry is bounded, through both entrances.
func TestTraffic(t *testing.T) {
	w := newWeb(t)
	for _, noProxy := range []string{"", "*"} {
		r := runIn(t, w.s, Policy{Hosts: hosts(t, "example.com")}, Command{Args: []string{need(t, "curl"), "-sS", "-o", "/dev/null", "--noproxy", noProxy, "http://example.com/big"}, Limits: Limits{Traffic: mib}})
		if r.Code != 137 || r.Limit == nil || r.Limit.Kind != limitTraffic || !strings.Contains(r.Limit.Error(), "1 MiB") {
			t.Errorf("noproxy %q: %d %v %s", noProxy, r.Code, r.Limit, r.Stderr)
		}
	}
}

// TestHostsEscapes: escapes through the network, with a host allowed.
func TestHostsEscapes(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	p := newPrey(t)
	p.s.o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no internet") }
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range escapes.All() {
		if e.Play != nil || e.Kind != escapes.Network && e.Kind != escapes.Kernel || e.Name == "an address of the internet" {
			continue // the call is allowed; where it leads is not
		}
		t.Run(strings.ReplaceAll(e.Name, " ", "-"), func(t *testing.T) {
			r := runIn(t, p.s, Policy{Hosts: hosts(t, "example.com", "http://10.1.2.3:8080")}, Command{Args: e.Command(binary), Env: p.Env})
			if r.Code != escapes.Held {
				t.Errorf("it ends with %d\n%s%s", r.Code, r.Stdout, r.Stderr)
			}
		})
	}
}

// TestLoopbackOfTheHost: it is reachable only if the policy names it, and only there.
func TestLoopbackOfTheHost(t *testing.T) {
	curl := need(t, "curl")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "local") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, test := range []struct {
		entry, host string
		ok          bool
	}{
		{"http://localhost:" + port, "localhost", true},
		{"http://127.0.0.1:" + port, "127.0.0.1", true},
		{"http://example.com:" + port, "localhost", false},
		{"http://localhost:1", "localhost", false},
	} {
		for _, noProxy := range []string{"", "*"} {
			r := runIn(t, New(nil), Policy{Hosts: hosts(t, test.entry)}, Command{Args: []string{curl, "-sSf", "--noproxy", noProxy, "http://" + test.host + ":" + port + "/"}})
			if ok := string(r.Stdout) == "local"; ok != test.ok {
				t.Errorf("%s, noproxy %q: %d %s%s", test.entry, noProxy, r.Code, r.Stdout, r.Stderr)
			}
		}
	}
}
