package web_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
)

// An answer is an HTTP response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, address string, change func(*http.Request)) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, _ := io.ReadAll(rsp.Body)
	return answer{rsp.StatusCode, rsp.Header, string(body)}
}

func (b *bench) origin() string {
	u, _ := url.Parse(b.address())
	return "http://" + u.Host
}

// SPEC §11.2: the page is public, and allowed nothing that it does not need.
func TestIndex(t *testing.T) {
	b := newBench(t)
	nonces := map[string]bool{}
	for range 2 {
		rsp := get(t, b.origin()+"/", nil)
		if rsp.status != http.StatusOK {
			t.Fatal(rsp.status)
		}
		m := regexp.MustCompile(`<meta\s+name="csp-nonce"\s+content="([^"]+)"`).FindStringSubmatch(rsp.body)
		if m == nil {
			t.Fatal("no nonce in the page")
		}
		csp := rsp.header.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self';", "style-src 'self' 'nonce-" + m[1] + "'",
			"connect-src 'self' ws://" + strings.TrimPrefix(b.origin(), "http://") + ";",
			"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
		} {
			if !strings.Contains(csp, want) {
				t.Errorf("CSP lacks %q: %s", want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Error(csp)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY", "Content-Type": "text/html; charset=utf-8",
		} {
			if got := rsp.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		nonces[m[1]] = true
	}
	if len(nonces) != 2 {
		t.Error("a nonce was used twice")
	}
}

// The page's own files are all served, with the type that nosniff demands.
func TestAssetsServed(t *testing.T) {
	b := newBench(t)
	body := get(t, b.origin()+"/", nil).body
	for _, m := range regexp.MustCompile(`(?:src|href)="/?(assets/[^"]+)"`).FindAllStringSubmatch(body, -1) {
		rsp := get(t, b.origin()+"/"+m[1], nil)
		if rsp.status != http.StatusOK || rsp.body == "" {
			t.Errorf("%s: %d", m[1], rsp.status)
		}
		if strings.HasSuffix(m[1], ".js") && !strings.HasPrefix(rsp.header.Get("Content-Type"), "text/javascript") {
			t.Errorf("%s is %s", m[1], rsp.header.Get("Content-Type"))
		}
		immutable := strings.Contains(rsp.header.Get("Cache-Control"), "immutable")
		if named := regexp.MustCompile(`-[A-Za-z0-9_]{8,}\.`).MatchString(m[1]); named != immutable {
			t.Errorf("%s: cached for ever: %v", m[1], immutable)
		}
	}
	for _, bad := range []string{"/assets/", "/assets/../web.go", "/assets/%2e%2e/web.go", "/assets/index.html", "/nothing", "/session", "/assets/x"} {
		if rsp := get(t, b.origin()+bad, nil); rsp.status == http.StatusOK {
			t.Errorf("GET %s: %d", bad, rsp.status)
		}
	}
}

// SPEC A-3: another Host or Origin gets nothing, whatever it asks for.
func TestForeign(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/", "/session", "/ws", "/assets/x"} {
		for name, change := range map[string]func(*http.Request){
			"rebound host":     func(r *http.Request) { r.Host = "evil.example" },
			"other port":       func(r *http.Request) { r.Host = "127.0.0.1:1" },
			"no port":          func(r *http.Request) { r.Host = "127.0.0.1" },
			"foreign origin":   func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
			"null origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
			"port's neighbour": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
			"https origin":     func(r *http.Request) { r.Header.Set("Origin", strings.Replace(b.origin(), "http:", "https:", 1)) },
		} {
			if rsp := get(t, b.origin()+path, change); rsp.status != http.StatusForbidden {
				t.Errorf("%s %s: %d", path, name, rsp.status)
			}
		}
	}
}

// A dead or slow listener of a page's costs an honest one nothing (SPEC A-4).
func TestHalfOpenSessions(t *testing.T) {
	b := newBench(t)
	origin, key := webtest.Login(t, b.address())
	for range 100 {
		conn, err := webtest.Enter(origin, key)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
	}
	b.eventually("the bound on pages", func() bool { return b.server.Pages() == 64 })
	watch := pace.Start(t)
	if rsp := get(t, origin+"/", nil); rsp.status != http.StatusOK || watch.Took() > pace.Slack*time.Second {
		t.Errorf("%d after %v", rsp.status, watch.Took())
	}
}
