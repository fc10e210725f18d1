package paths

import (
	"path/filepath"
	"testing"
)

func TestOfURI(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///p/a.go": "/p/a.go", "file:/p/a": "/p/a", "file://localhost/p": "/p", "FILE:///p/%C3%BC%25": "/p/ü%",
		"file:///p/a#b?c": "/p/a#b?c", "file:///p/100%": "/p/100%", "file:///p/../q": "/q",
		"file://host/share": "", "untitled:x": "", "": "", "file:": "", "file:///a%00b": "", "oil:///p": "",
	} {
		if got, ok := OfURI(uri); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", uri, got, ok)
		}
	}
	for _, path := range []string{"/p/a.go", "/ü ñ/😀#?%41;:@&=+$,", "/p/[x]\"`<>"} {
		if got, ok := OfURI(URI(path)); !ok || got != path {
			t.Errorf("%q became %q by %q", path, got, URI(path))
		}
	}
}

// What agents send as a path: a URI, escaped or not, or the path itself. Claude Code puts "file://" before an
// unescaped path.
func TestOfText(t *testing.T) {
	for text, want := range map[string]string{
		"/p/a.go": "/p/a.go", "/p/../q/": "/q", "/p/100%25": "/p/100%25", "file:///p/%C3%BC": "/p/ü", "file:///p/a#b?c": "/p/a#b?c",
		"file:///p/100%": "/p/100%", "a": "a", "": ".", "file://host/share": "file:/host/share", "untitled:x": "untitled:x",
	} {
		if got := OfText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzOfURI: every result is absolute, and survives the round trip through URI.
func FuzzOfURI(f *testing.F) {
	for _, s := range []string{"file:///p/a", "file:/p", "file://localhost/p", "file:///%00", "file:///%C3%BC%", "file:////x", "x", "/p"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		path, ok := OfURI(uri)
		if !ok {
			return
		}
		if !filepath.IsAbs(path) {
			t.Fatalf("%q is %q", uri, path)
		}
		if back, ok := OfURI(URI(path)); !ok || back != path {
			t.Fatalf("%q became %q", path, back)
		}
	})
}
