package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/permission"
)

// TestSubject: what consent is bound to changes with the content, and not with
// .env, caches, install metadata or formatting (SPEC S-2).
func TestSubject(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const text = `{"name":"x","version":"1","permissions":{"filesystem":{"read":"none"}},"tools":[{"name":"t","description":"d","executable":"t.sh","runtime":"shell"}]}`
	write("gemini-extension.json", text)
	write("t.sh", "echo 1")
	of := func() consent.Subject {
		t.Helper()
		m, _, err := manifest.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Subject(&store.Extension{Name: "x", Folder: dir, Dir: dir, Manifest: m})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := of()
	write(".env", "TOKEN=1")
	write("__pycache__/a.pyc", "x")
	write(".gemini-extension-install.json", "{}")
	write(".git/HEAD", "x")
	write("gemini-extension.json", strings.ReplaceAll(text, `,"`, ", \n\""))
	if got := of(); got.Content != first.Content {
		t.Error("what is no content changed the hash")
	}
	write("gemini-extension.json", strings.Replace(text, `"none"`, `"workspace"`, 1))
	if got := of(); got.Content != first.Content || got.Permissions.Read != permission.Workspace {
		t.Error("permissions are compared as such, not by hash")
	}
	write("gemini-extension.json", text)
	write("t.sh", "echo 2")
	if got := of(); got.Content == first.Content {
		t.Error("another script, the same hash")
	}
	m, _, err := manifest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	link, err := Subject(&store.Extension{Name: "x", Folder: "/f", Dir: dir, Manifest: m, Metadata: &store.Metadata{Type: "link", Source: dir}})
	if err != nil || !link.Linked() || link.Source != "link "+dir {
		t.Errorf("%+v %v", link, err)
	}
}
