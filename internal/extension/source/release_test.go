package source

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// hub replaces GitHub's API, on loopback.
type hub struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string // path?query → body; "302 PATH" redirects
	auth  []string          // the Authorization of each request
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{files: map[string]string{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.auth = append(h.auth, r.Header.Get("Authorization"))
		body, ok := h.files[r.URL.RequestURI()]
		if to, redirect := strings.CutPrefix(body, "302 "); redirect {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if code := 0; strings.HasPrefix(body, "status ") {
			fmt.Sscanf(body, "status %d", &code)
			w.WriteHeader(code)
			return
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(h.Close)
	t.Setenv("GITHUB_API_URL", h.URL)
	t.Setenv("GITHUB_TOKEN", "t0ken")
	t.Setenv("GIT_TERMINAL_PROMPT", "0")
	return h
}

func (h *hub) serve(path, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[path] = body
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return string(data)
}

// TestChoose: the CLI's rule decides which file of a release is taken.
func TestChoose(t *testing.T) {
	a := func(names ...string) (r release) {
		for _, n := range names {
			r.Assets = append(r.Assets, asset{Name: n, URL: n})
		}
		r.Tarball = "tarball"
		return r
	}
	for _, c := range []struct {
		r    release
		want string
	}{
		{a("darwin.arm64.x.tar.gz", "linux.x64.x.tar.gz", "linux.x.tar.gz"), "linux.x64.x.tar.gz"},
		{a("linux.arm64.x.tar.gz", "Linux.x.tar.gz"), "linux.arm64.x.tar.gz"}, // only the platform's prefix decides, in order
		{a("win32.x.zip", "Linux.X64.x.zip"), "Linux.X64.x.zip"},
		{a("x.tar.gz"), "x.tar.gz"},
		{a("x-linux.tar.gz"), "tarball"},
		{a("x.tar.gz", "y.tar.gz"), "tarball"},
		{a(), "tarball"},
		{release{Zipball: "zipball"}, "zipball"},
	} {
		got, _, err := c.r.choose("linux", "x64")
		if err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.r.Assets, got, err, c.want)
		}
	}
	if _, _, err := (release{Tag: "v1"}).choose("linux", "x64"); err == nil {
		t.Error("a release without files was taken")
	}
}

// TestRelease (SPEC M-2): the newest release, a tag, a pre-release, a release's sources, and the token only for the
// API's own host.
func TestRelease(t *testing.T) {
	h := newHub(t)
	packed := content(t, tarOf(t, entry{name: "owner-repo-abc/gemini-extension.json", content: manifestText}))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went to another host")
		}
		fmt.Fprint(w, packed)
	}))
	defer elsewhere.Close()
	release := func(tag string) string {
		return fmt.Sprintf(`{"tag_name":%q,"tarball_url":"%s/%s.tar.gz","assets":[]}`, tag, h.URL, tag)
	}
	h.serve("/repos/owner/repo/releases/latest", release("v2"))
	h.serve("/repos/owner/repo/releases/tags/v1", release("v1"))
	h.serve("/repos/owner/repo/releases?per_page=1", "["+release("v3-beta")+"]")
	for _, tag := range []string{"v1", "v2", "v3-beta"} {
		h.serve("/"+tag+".tar.gz", "302 "+strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)+"/file")
	}
	for want, w := range map[string]Wish{"v2": {}, "v1": {Ref: "v1"}, "v3-beta": {PreRelease: true}} {
		got, err := fetch(t, "owner/repo", w, nil)
		if err != nil || got.Tag != want || got.Source.Kind != Release || got.Commit != "" {
			t.Errorf("%+v: %+v, %v", w, got, err)
			continue
		}
		if text := content(t, filepath.Join(got.Dir, "gemini-extension.json")); text != manifestText {
			t.Errorf("%+v: %s", w, text)
		}
		if now, err := Newest(t.Context(), got.Source, nil); err != nil || now != want {
			t.Errorf("newest of %+v: %q, %v", w, now, err)
		}
	}
	for _, auth := range h.auth {
		if auth != "Bearer t0ken" {
			t.Errorf("the API was asked with %q", auth)
		}
	}
}

// TestReleaseProgress: a long download is reported, a short one is not.
func TestReleaseProgress(t *testing.T) {
	h := newHub(t)
	noise := make([]byte, 3<<20)
	rand.Read(noise)
	h.serve("/repos/owner/repo/releases/latest", `{"tag_name":"v1","tarball_url":"`+h.URL+`/x"}`)
	for content1, want := range map[string]string{"short": "", string(noise): "\rreceived 1 MiB\rreceived 2 MiB\rreceived 3 MiB\n"} {
		h.serve("/x", content(t, tarOf(t, entry{name: "gemini-extension.json", content: manifestText}, entry{name: "data", content: content1})))
		var told strings.Builder
		if _, err := fetch(t, "owner/repo", Wish{}, &Options{Progress: &told}); err != nil || told.String() != want {
			t.Errorf("%d bytes: told %q, %v", len(content1), told.String(), err)
		}
	}
}

// TestReleaseOrRepository: without a release, or if the API fails, git fetches the repository, and the user learns of
// a failure. A hostile release is refused and not replaced.
func TestReleaseOrRepository(t *testing.T) {
	h := newHub(t)
	needGit(t, "")
	dir, _, second := repository(t)
	needGit(t, "[url \"file://"+dir+"\"]\ninsteadOf = https://github.com/owner/repo\n")
	t.Setenv("GIT_ALLOW_PROTOCOL", "file")
	var told []string
	o := &Options{Warn: func(s string) { told = append(told, s) }}
	got, err := fetch(t, "owner/repo", Wish{}, o)
	if err != nil || got.Commit != second || got.Source.Kind != Git || len(told) > 0 {
		t.Errorf("without a release: %+v, %v, told %q", got, err, told)
	}
	h.serve("/repos/owner/repo/releases/latest", "status 403")
	got, err = fetch(t, "owner/repo", Wish{}, o)
	if err != nil || got.Commit != second || len(told) != 1 || !strings.Contains(told[0], "GITHUB_TOKEN") {
		t.Errorf("with a failing API: %+v, %v, told %q", got, err, told)
	}
	h.serve("/repos/owner/repo/releases/latest", `{"tag_name":"v1","tarball_url":"`+h.URL+`/evil"}`)
	h.serve("/evil", content(t, tarOf(t, entry{name: "../evil", content: "x"})))
	if got, err := fetch(t, "owner/repo", Wish{}, o); !errors.Is(err, ErrRefused) {
		t.Errorf("a hostile release: %+v, %v", got, err)
	}
}

// TestDowngrade: a redirect from https to http is not followed.
func TestDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the open line was used") }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	hub := newGitHub(&Options{GitHubAPI: secure.URL})
	hub.client.Transport = secure.Client().Transport
	if err := hub.get(t.Context(), secure.URL, "*/*", io.Discard, 1); err == nil || !strings.Contains(err.Error(), "not an https address") {
		t.Errorf("error %v", err)
	}
}

// A release that exists but does not arrive completely is an error, at install and update. pollux never takes the
// repository instead, which may contain unreleased code (SPEC M-2). An updated release stays a release, an updated
// repository a repository.
func TestReleaseBroken(t *testing.T) {
	h := newHub(t)
	needGit(t, "")
	dir, _, second := repository(t)
	needGit(t, "[url \"file://"+dir+"\"]\ninsteadOf = https://github.com/owner/repo\n")
	t.Setenv("GIT_ALLOW_PROTOCOL", "file")
	whole := content(t, tarOf(t, entry{name: "gemini-extension.json", content: manifestText}))
	rel := func(file string) string {
		return `{"tag_name":"v1","tarball_url":"` + h.URL + "/x" + `","assets":[{"name":"ext.tar.gz","url":"` + h.URL + `/file","digest":"` + file + `"}]}`
	}
	const latest = "/repos/owner/repo/releases/latest"
	for name, test := range map[string]struct{ latest, file, says string }{
		"cut off":             {rel(""), whole[:len(whole)/2], "the download is damaged"},
		"empty":               {rel(""), "", "the download is damaged"},
		"a page in its place": {rel(""), "<html>Sign in</html>", "neither a .zip nor a .tar.gz"},
		"it fails":            {rel(""), "status 500", "500"},
		"it is not there":     {rel(""), "status 404", `the release "v1" of owner/repo cannot be fetched`},
		"another file":        {rel("sha256:" + strings.Repeat("0", 64)), whole, "is not the file that GitHub has the hash of"},
		"nothing to fetch":    {`{"tag_name":"v1"}`, whole, "nothing to download"},
	} {
		h.serve(latest, test.latest)
		h.serve("/file", test.file)
		for kind, keep := range map[Kind]bool{Git: false, Release: true} {
			got, err := Fetch(t.Context(), Source{Kind: kind, Location: "https://github.com/owner/repo", GitHub: "owner/repo"}, t.TempDir(), &Options{Keep: keep})
			if err == nil || errors.Is(err, ErrUsage) || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), os.TempDir()) {
				t.Errorf("%s, %s: %+v, %v", name, kind, got.Source, err)
			}
		}
	}
	for name, answer := range map[string]string{"no release any more": "status 404", "a failing API": "status 403"} {
		h.serve(latest, answer)
		if got, err := Fetch(t.Context(), Source{Kind: Release, Location: "https://github.com/owner/repo", GitHub: "owner/repo"}, t.TempDir(), &Options{Keep: true}); err == nil {
			t.Errorf("%s: %+v", name, got.Source)
		}
	}
	h.serve(latest, rel(""))
	h.serve("/file", whole)
	for kind, commit := range map[Kind]string{Git: second, Release: ""} {
		got, err := Fetch(t.Context(), Source{Kind: kind, Location: "https://github.com/owner/repo", GitHub: "owner/repo"}, t.TempDir(), &Options{Keep: true})
		if err != nil || got.Source.Kind != kind || got.Commit != commit {
			t.Errorf("%s became %+v, %v", kind, got, err)
		}
	}
}
