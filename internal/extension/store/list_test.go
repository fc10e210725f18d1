package store

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
)

// TestBrokenSiblings (SPEC E-4): a broken extension hides no other. Each is listed with the reason, described, and
// removed.
func TestBrokenSiblings(t *testing.T) {
	s := newStore(t)
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	for name, text := range map[string]string{
		"syntax/gemini-extension.json":            `{"name":"syntax",`,
		"nameless/gemini-extension.json":          `{"version":"1"}`,
		"types/gemini-extension.json":             `{"name":"types","version":"1","mcpServers":{"s":null}}`,
		"deadlink/.gemini-extension-install.json": `{"source":"/no/such/folder","type":"link"}`,
		"empty/.keep":                            "",
		"garbage/gemini-extension.json":          `{"name":"garbage","version":"1"}`,
		"garbage/.gemini-extension-install.json": `not json`,
		"afile":                                  "a file is no extension",
		"../pollux/records/x.bad.json":           "rubbish",
	} {
		write(t, filepath.Join(s.Dir(), filepath.FromSlash(name)), text)
	}
	all, err := s.List()
	must(t, err)
	var names []string
	for _, x := range all {
		names = append(names, x.Name)
		broken := !slices.Contains([]string{"x", "garbage"}, x.Name)
		if broken != (x.Problem != "") || x.Manifest == nil {
			t.Errorf("%s: problem %q", x.Name, x.Problem)
		}
	}
	if diff := cmp.Diff([]string{"deadlink", "empty", "garbage", "nameless", "syntax", "types", "x"}, names); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"syntax", "nameless", "types", "deadlink", "empty", "garbage"} {
		x, err := s.Get(name)
		must(t, err)
		must(t, s.Uninstall(context.Background(), x))
	}
	if all, err := s.List(); err != nil || len(all) != 1 || all[0].Problem != "" {
		t.Errorf("%v, %v", all, err)
	}
	tidyBut(t, s, "afile")
}

// tidyBut is tidy, allowing one more file.
func tidyBut(t *testing.T, s *Store, name string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(s.Dir(), name)))
	tidy(t, s)
}

// TestTwins: two folders with the same manifest name keep the CLI from starting. Both are reported, and either can be
// removed.
func TestTwins(t *testing.T) {
	s := newStore(t)
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	twin := extension(t, filepath.Join(s.Dir(), "other"), "2")
	all, err := s.List()
	must(t, err)
	if len(all) != 2 || !strings.Contains(all[0].Problem, twin) || !strings.Contains(all[1].Problem, twin) {
		t.Fatalf("%+v", all)
	}
	if err := perform(s, "install", extension(t, t.TempDir(), "3")); !errors.Is(err, ErrExists) {
		t.Errorf("a third: %v", err)
	}
	x, err := s.Get(twin)
	must(t, err)
	must(t, s.Uninstall(context.Background(), x))
	settled(t, s, operation{}, "1") // the other one's rules and record remain
	tidy(t, s)
}

// TestNamesCollide: a name that differs only in case is taken, and so is an existing folder's name.
func TestNamesCollide(t *testing.T) {
	s := newStore(t)
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	upper := t.TempDir()
	write(t, filepath.Join(upper, manifest.FileName), `{"name":"X","version":"1"}`)
	if err := perform(s, "install", upper); !errors.Is(err, ErrExists) {
		t.Errorf("error %v", err)
	}
	write(t, filepath.Join(s.Dir(), "taken", "file"), "")
	write(t, filepath.Join(upper, manifest.FileName), `{"name":"taken","version":"1"}`)
	if err := perform(s, "install", upper); !errors.Is(err, ErrExists) {
		t.Errorf("error %v", err)
	}
}

// TestFind: finds by name in any case, by folder and by source; otherwise suggests the nearest names.
func TestFind(t *testing.T) {
	all := []*Extension{
		{Name: "code-analyzer", Folder: "/e/code-analyzer", Metadata: &Metadata{Source: "https://example.com/a", Type: "git"}},
		{Name: "hello", Folder: "/e/hello"}, {Name: "yellow", Folder: "/e/yellow"},
	}
	for _, name := range []string{"code-analyzer", "Code-Analyzer", "/e/code-analyzer", "/e/code-analyzer/", "https://example.com/A"} {
		if x, err := Find(all, name); err != nil || x != all[0] {
			t.Errorf("%s: %v, %v", name, x, err)
		}
	}
	for name, want := range map[string][]string{"hallo": {"hello"}, "code": {"code-analyzer"}, "ello": {"hello", "yellow"}, "zzz": nil, "": nil, "code-analyser": {"code-analyzer"}} {
		_, err := Find(all, name)
		var unknown *NotFoundError
		if !errors.As(err, &unknown) || !slices.Equal(unknown.Nearest, want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestVerify: reports what changed since the install.
func TestVerify(t *testing.T) {
	s := newStore(t)
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	dir := s.folder("x")
	write(t, filepath.Join(dir, ".env"), "A=1") // the user's, not content
	if v, err := s.Verify("x"); err != nil || !v.Same() {
		t.Fatalf("%+v, %v", v, err)
	}
	write(t, filepath.Join(dir, "GEMINI.md"), "changed")
	write(t, filepath.Join(dir, "new.md"), "new")
	must(t, os.Remove(filepath.Join(dir, "deep", "1.txt")))
	v, err := s.Verify("x")
	must(t, err)
	if v.Same() || v.ByOther || !slices.Equal(v.Changed, []string{"GEMINI.md"}) || !slices.Equal(v.Added, []string{"new.md"}) || !slices.Equal(v.Removed, []string{"deep/1.txt"}) {
		t.Errorf("%+v", v)
	}
	write(t, filepath.Join(dir, manifest.InstallFileName), `{"source":"/elsewhere","type":"local"}`)
	if v, err := s.Verify("x"); err != nil || !v.ByOther {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestLink: a link has only metadata, follows its folder and has no updates. Removing it keeps the folder.
func TestLink(t *testing.T) {
	s := newStore(t)
	dir := extension(t, t.TempDir(), "1")
	p, err := s.PlanInstall(context.Background(), source.Source{Kind: source.Link, Location: dir}, nil)
	must(t, err)
	must(t, p.Apply(context.Background()))
	p.Close()
	extension(t, dir, "2")
	x, err := s.Get("x")
	must(t, err)
	entries, _ := os.ReadDir(s.folder("x"))
	if x.Manifest.Version != "2" || !x.Linked() || x.Dir != dir || len(entries) != 1 || x.InstalledBy() != "pollux" {
		t.Errorf("%+v, in its folder: %v", x, entries)
	}
	if _, err := s.PlanUpdate(context.Background(), x, nil); !IsLinked(err) {
		t.Errorf("update: %v", err)
	}
	must(t, s.Uninstall(context.Background(), x))
	if read(t, filepath.Join(dir, "GEMINI.md")) != "context of 2" {
		t.Error("the folder was touched")
	}
	tidy(t, s)
}

// TestUpdateRefusals: if a source is gone, broken, or has become another extension, the old version stays.
func TestUpdateRefusals(t *testing.T) {
	for what, spoil := range map[string]func(dir string){
		"gone":      func(dir string) { must(t, os.RemoveAll(dir)) },
		"renamed":   func(dir string) { write(t, filepath.Join(dir, manifest.FileName), `{"name":"y","version":"2"}`) },
		"invalid":   func(dir string) { write(t, filepath.Join(dir, manifest.FileName), `{"name":"x"`) },
		"malicious": func(dir string) { must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "l"))) },
	} {
		s, dir := newStore(t), extension(t, t.TempDir(), "1")
		must(t, perform(s, "install", dir))
		before := snapshot(t, s)
		extension(t, dir, "2")
		spoil(dir)
		if err := perform(s, "update", ""); err == nil {
			t.Errorf("%s: no error", what)
		}
		if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		tidy(t, s)
	}
}

// TestMigrated: an extension that says where it moved to is updated from there, if that answers. The question then
// names the new source.
func TestMigrated(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repo := extension(t, t.TempDir(), "2")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "2"}} {
		out, err := exec.Command("git", append([]string{"-C", repo}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for to, want := range map[string]string{"file://" + filepath.ToSlash(repo): "2", "file:///no/such/repository": "1b", "ext::sh -c evil": "1b", "/etc": "1b"} {
		s, src := newStore(t), extension(t, t.TempDir(), "1")
		told := 0
		s.warn = func(string) { told++ }
		write(t, filepath.Join(src, manifest.FileName), `{"name":"x","version":"1","migratedTo":"`+to+`"}`)
		must(t, perform(s, "install", src))
		write(t, filepath.Join(src, manifest.FileName), `{"name":"x","version":"1b","migratedTo":"`+to+`"}`)
		must(t, perform(s, "update", ""))
		x, err := s.Get("x")
		must(t, err)
		if x.Manifest.Version != want || (x.Metadata.Source == to) != (want == "2") || (told > 0) != (want == "1b") {
			t.Errorf("moved to %q: version %s from %s, told %d times", to, x.Manifest.Version, x.Metadata.Source, told)
		}
	}
}

// TestOpen: GEMINI_CLI_HOME replaces the home folder, as in the CLI.
func TestOpen(t *testing.T) {
	home := t.TempDir()
	t.Setenv("GEMINI_CLI_HOME", home)
	s, err := Open(nil)
	must(t, err)
	if want := filepath.Join(home, ".gemini", "extensions"); s.Dir() != want || s.home != home {
		t.Errorf("%s, want %s", s.Dir(), want)
	}
	if all, err := s.List(); err != nil || len(all) != 0 || exists(s.gemini) {
		t.Errorf("an empty home: %v, %v; or reading made something", all, err)
	}
}

// TestUpToDate: without changes nothing is done; a file that changed under the same version is an update.
func TestUpToDate(t *testing.T) {
	s, dir := newStore(t), extension(t, t.TempDir(), "1")
	must(t, perform(s, "install", dir))
	for _, want := range []bool{true, false} {
		x, err := s.Get("x")
		must(t, err)
		p, err := s.PlanUpdate(context.Background(), x, nil)
		must(t, err)
		if p.UpToDate != want {
			t.Errorf("up to date: %v, want %v", p.UpToDate, want)
		}
		p.Close()
		write(t, filepath.Join(dir, "GEMINI.md"), "changed")
	}
	tidyLocked(t, s)
}

// tidyLocked is tidy after a change has swept.
func tidyLocked(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.locked(context.Background(), func() error { return nil }))
	tidy(t, s)
}

// TestExport (reproducible): the same content gives the same bytes whatever the times, modes and settings, and
// installs as the same content.
func TestExport(t *testing.T) {
	var zips [][]byte
	var hashes []string
	for i := range 2 {
		s, dir := newStore(t), extension(t, t.TempDir(), "1")
		write(t, filepath.Join(dir, "bin", "run"), "#!/bin/sh\n")
		must(t, os.Chmod(filepath.Join(dir, "bin", "run"), 0o700|os.FileMode(i)*0o55))
		must(t, os.Symlink("run", filepath.Join(dir, "bin", "alias")))
		must(t, perform(s, "install", dir))
		write(t, filepath.Join(s.folder("x"), ".env"), "SECRET=1")
		x, err := s.Get("x")
		must(t, err)
		file := filepath.Join(t.TempDir(), "x.zip")
		hash, err := s.Export(x, file, false)
		must(t, err)
		if _, err := s.Export(x, file, false); err == nil {
			t.Error("an existing file was replaced")
		}
		hashes, zips = append(hashes, hash), append(zips, []byte(read(t, file)))
		if bytes.Contains(zips[i], []byte("SECRET")) {
			t.Error("the user's settings are in it")
		}
		other := newStore(t)
		p, err := other.PlanInstall(context.Background(), source.Source{Kind: source.Archive, Location: file}, nil)
		must(t, err)
		must(t, p.Apply(context.Background()))
		p.Close()
		if p.Hash != hash {
			t.Errorf("installed from the archive: %s, exported: %s", p.Hash, hash)
		}
		tidy(t, other)
	}
	if !bytes.Equal(zips[0], zips[1]) || hashes[0] != hashes[1] {
		t.Errorf("two exports differ: %d and %d bytes, %q", len(zips[0]), len(zips[1]), hashes)
	}
	r, err := zip.NewReader(bytes.NewReader(zips[0]), int64(len(zips[0])))
	must(t, err)
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"GEMINI.md", "bin/alias", "bin/run", "deep/1.txt", "gemini-extension.json"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestOtherDisk: if the extensions folder is a link to another disk, changes are prepared there.
func TestOtherDisk(t *testing.T) {
	s, real := newStore(t), filepath.Join(t.TempDir(), "extensions")
	must(t, os.MkdirAll(real, 0o700))
	must(t, os.MkdirAll(s.gemini, 0o700))
	if err := os.Symlink(real, s.Dir()); err != nil {
		t.Skip(err)
	}
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	if got := whole(t, s); got != "1" || filepath.Dir(s.stagingDir()) != filepath.Dir(real) {
		t.Errorf("version %q, staged in %s", got, s.stagingDir())
	}
	must(t, perform(s, "uninstall", ""))
	tidy(t, s)
}

// TestSearch: all words must occur; a name counts more than a description.
func TestSearch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.json")
	write(t, file, `{"extensions":[
		{"name":"format-go","description":"Formats Go code","source":"o/format","keywords":["gofmt"]},
		{"name":"linter","description":"Lints and can format","version":"2","source":"o/linter"},
		{"extensionName":"gallery","extensionDescription":"from the gallery","url":"https://github.com/o/g","extra":1},
		{"name":"nowhere","description":"format without a source"}, 7]}`)
	all, err := ReadIndex(file)
	must(t, err)
	for words, want := range map[string][]string{
		"format": {"format-go", "linter"}, "FORMAT go": {"format-go"}, "gofmt": {"format-go"}, "gallery": {"gallery"}, "lint": {"linter"}, "nothing": nil, "": {"format-go", "gallery", "linter"},
	} {
		var got []string
		for _, e := range Search(all, strings.Fields(words)) {
			got = append(got, e.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", words, diff)
		}
	}
	for _, broken := range []string{"", "7", `{"a":1}`, `[{"name":"x"}]`} {
		write(t, file, broken)
		if all, err := ReadIndex(file); err == nil {
			t.Errorf("%q: %v", broken, all)
		}
	}
}

// A panic of pollux while reading one extension makes that one broken, and hides no other.
func TestListSurvivesPanics(t *testing.T) {
	s := newStore(t)
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	entries, err := os.ReadDir(s.Dir())
	must(t, err)
	for _, e := range entries {
		if e.Name() != "x" {
			continue
		}
		if x := s.readOne(e, nil, nil); x == nil || !strings.Contains(x.Problem, "mistake") || x.Manifest == nil || x.Name != "x" {
			t.Errorf("%+v", x)
		}
		return
	}
	t.Fatal("it is not installed")
}
