package mcp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent/copilot"
	"github.com/pollux-companion/pollux/internal/peers"
)

// T-1: MCP's own suite, as far as it applies; docs/conformance.md says which
// scenarios those are, and names every scenario that the suite has.
func TestConformance(t *testing.T) {
	peers.Need(t, peers.Conformance)
	b := newBench(t, nil)
	url := tokenProxy(t, contract.Target{Addr: b.addr, Token: testToken}, "Bearer ") + "/mcp"
	listed := conformanceList(t)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(suite(t, "list", "--server"), -1) {
		names = append(names, m[1])
		if listed[m[1]] == "" {
			t.Errorf("docs/conformance.md does not name %q", m[1])
		}
	}
	for name, result := range listed {
		if !slices.Contains(names, name) {
			t.Errorf("docs/conformance.md names %q, which the suite does not have", name)
		}
		if result != "passes" {
			continue
		}
		t.Run(name, func(t *testing.T) { passes(t, url, name) })
	}
}

// T-1, GC-1: the same for Copilot CLI's dialect, on its private socket, which has no name that a foreign page could take.
func TestConformanceOfCopilot(t *testing.T) {
	peers.Need(t, peers.Conformance)
	url := tokenProxy(t, newUser(t, map[string]string{"agent": "copilot"}).target("copilot"), copilot.TokenScheme) + "/mcp"
	for name, result := range conformanceList(t) {
		if result == "passes" && name != "dns-rebinding-protection" {
			t.Run(name, func(t *testing.T) { passes(t, url, name) })
		}
	}
}

// passes plays one scenario of the suite's.
func passes(t *testing.T, url, name string) {
	t.Helper()
	out := suite(t, "server", "--url", url, "--scenario", name)
	m := regexp.MustCompile(`Passed: (\d+)/(\d+), 0 failed, 0 warnings`).FindStringSubmatch(out)
	if m == nil || m[1] == "0" || m[1] != m[2] {
		t.Errorf("%s", out)
	}
}

// suite runs the suite and returns what it printed.
func suite(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	argv := peers.Command(t, peers.Conformance, args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = t.TempDir() // it may write its results there
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// conformanceList reads the table of docs/conformance.md.
func conformanceList(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		if list[m[1]] = m[2]; (m[2] == "passes") != (m[3] == "") {
			t.Errorf("%s: a reason is given exactly where a scenario does not apply", m[1])
		}
	}
	return list
}

// tokenProxy adds what the suite does not know: the token, by its scheme, and the
// socket. It calls the server by its own name where the suite has called the proxy
// by its own, so that the suite's foreign Hosts and Origins arrive as they are.
func tokenProxy(t *testing.T, to contract.Target, scheme string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	own := s.Listener.Addr().String()
	rename := func(s string) string { return strings.Replace(s, own, to.Addr, 1) }
	transport := &http.Transport{}
	if to.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return to.Dial(ctx) }
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: to.Addr})
			r.Out.Host = rename(r.In.Host)
			if origin := r.In.Header.Get("Origin"); origin != "" {
				r.Out.Header.Set("Origin", rename(origin))
			}
			r.Out.Header.Set("Authorization", scheme+to.Token)
		},
	}
	s.Config.Handler = proxy
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(transport.CloseIdleConnections)
	return s.URL
}
