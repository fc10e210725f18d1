package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
)

// hub is a fake GitHub API with one release of owner/repo, which a test changes between requests.
type hub struct {
	tag  string
	file []byte
	lost bool // there is no release
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.lost:
		http.NotFound(w, r)
	case strings.HasSuffix(r.URL.Path, "/releases/latest"):
		fmt.Fprintf(w, `{"tag_name":%q,"tarball_url":"http://%s/file"}`, h.tag, r.Host)
	case r.URL.Path == "/file":
		_, _ = w.Write(h.file)
	default:
		http.NotFound(w, r)
	}
}

// publish makes a release of a version.
func (h *hub) publish(t *testing.T, version string) {
	t.Helper()
	text := `{"name":"x","version":"` + version + `"}`
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	out := tar.NewWriter(z)
	must(t, out.WriteHeader(&tar.Header{Name: manifest.FileName, Mode: 0o644, Size: int64(len(text))}))
	_, err := out.Write([]byte(text))
	must(t, err)
	must(t, out.Close())
	must(t, z.Close())
	h.tag, h.file = "v"+version, b.Bytes()
}

// SPEC M-2: if a release's download breaks, or the release is gone, an update leaves the old version and its source
// unchanged. The next complete release is taken. An older one is reported as older.
func TestReleaseUpdate(t *testing.T) {
	h := &hub{}
	server := httptest.NewServer(h)
	defer server.Close()
	t.Setenv("GITHUB_API_URL", server.URL)
	s := newStore(t)
	h.publish(t, "1.0.0")
	src, err := source.Parse("owner/repo", t.TempDir(), source.Wish{})
	must(t, err)
	p, err := s.PlanInstall(t.Context(), src, nil)
	must(t, err)
	must(t, p.Apply(t.Context()))
	p.Close()
	before := snapshot(t, s)
	update := func() (*Plan, error) {
		x, err := s.Get("x")
		must(t, err)
		return s.PlanUpdate(t.Context(), x, nil)
	}
	for name, spoil := range map[string]func(){
		"cut off":  func() { h.publish(t, "2.0.0"); h.file = h.file[:40] },
		"no file":  func() { h.publish(t, "2.0.0"); h.file = nil },
		"no hub":   func() { h.publish(t, "2.0.0"); h.file = []byte("<html>") },
		"gone":     func() { h.lost = true },
		"no more":  func() { h.lost = true; h.publish(t, "3.0.0") },
		"no title": func() { h.lost = false; h.publish(t, "2.0.0"); h.tag, h.file = "", nil },
	} {
		spoil()
		if p, err := update(); err == nil {
			t.Errorf("%s: %+v", name, p.Fetched)
			p.Close()
		}
		h.lost = false
		if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
			t.Errorf("%s: -before +after\n%s", name, diff)
		}
	}
	for _, step := range []struct {
		version string
		older   bool
	}{{"2.0.0", false}, {"2.0.0-rc.1", true}, {"1.9.0", true}, {"10.0.0", false}} {
		h.publish(t, step.version)
		p, err := update()
		must(t, err)
		if p.Older != step.older || p.Moved || p.Fetched.Source.Kind != source.Release {
			t.Errorf("to %s: older %v, moved %v, %+v", step.version, p.Older, p.Moved, p.Fetched.Source)
		}
		must(t, p.Apply(t.Context()))
		p.Close()
	}
	x, err := s.Get("x")
	must(t, err)
	if x.Manifest.Version != "10.0.0" || x.Metadata.Type != string(source.Release) || x.Metadata.ReleaseTag != "v10.0.0" {
		t.Errorf("%+v", x.Metadata)
	}
}
