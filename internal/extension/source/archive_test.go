package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entry is one entry of an archive for a test.
type entry struct {
	name, content string
	mode          fs.FileMode
	link          string // the target of a symbolic link
	hard          bool   // a hard link to link; only in tar
}

const manifestText = `{"name":"x","version":"1"}`

func zipOf(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		content := e.content
		if e.link != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			content = e.link
		}
		w, err := z.CreateHeader(h)
		must(t, err)
		_, err = w.Write([]byte(content))
		must(t, err)
	}
	must(t, z.Close())
	return saved(t, "x.zip", b.Bytes())
}

func tarOf(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(0o644 | e.mode.Perm()), Typeflag: tar.TypeReg, Size: int64(len(e.content)), Linkname: e.link}
		switch {
		case e.hard:
			h.Typeflag, h.Size = tar.TypeLink, 0
		case e.link != "":
			h.Typeflag, h.Size = tar.TypeSymlink, 0
		case e.mode.IsDir():
			h.Typeflag, h.Size = tar.TypeDir, 0
		case e.mode&fs.ModeNamedPipe != 0:
			h.Typeflag, h.Size = tar.TypeFifo, 0
		case e.mode&fs.ModeDevice != 0:
			h.Typeflag, h.Size, h.Devmajor, h.Devminor = tar.TypeChar, 0, 1, 3
		}
		if e.mode&fs.ModeSetuid != 0 {
			h.Mode |= 0o4000
		}
		must(t, w.WriteHeader(h))
		if h.Size > 0 {
			_, err := w.Write([]byte(e.content))
			must(t, err)
		}
	}
	must(t, errors.Join(w.Close(), g.Close()))
	return saved(t, "x.tar.gz", b.Bytes())
}

func saved(t testing.TB, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, data, 0o600))
	return file
}

// TestUnpack (SPEC M-2): a good archive of either format is unpacked with its links and executables, also with a
// single folder at its top.
func TestUnpack(t *testing.T) {
	for _, top := range []string{"", "./", "repo-1.0/"} {
		entries := []entry{
			{name: top + "gemini-extension.json", content: manifestText},
			{name: top + "bin/run", content: "#!/bin/sh\n", mode: 0o755},
			{name: top + "bin/link", link: "../gemini-extension.json"},
			{name: top + "empty", content: ""},
			{name: top + ".env", content: "A=1"}, {name: top + "__pycache__/x.pyc", content: "x"},
		}
		for _, file := range []string{zipOf(t, entries...), tarOf(t, entries...)} {
			got, err := Fetch(t.Context(), Source{Kind: Archive, Location: file}, t.TempDir(), nil)
			if err != nil {
				t.Errorf("%s %q: %v", filepath.Base(file), top, err)
				continue
			}
			if text, _ := os.ReadFile(filepath.Join(got.Dir, "bin", "link")); string(text) != manifestText {
				t.Errorf("through the link: %q", text)
			}
			if info, err := os.Stat(filepath.Join(got.Dir, "bin", "run")); err != nil || info.Mode().Perm()&0o100 == 0 {
				t.Errorf("the executable: %v, %v", info, err)
			}
			for _, name := range []string{".env", "__pycache__"} {
				if _, err := os.Lstat(filepath.Join(got.Dir, name)); err == nil {
					t.Errorf("%s was taken over", name)
				}
			}
		}
	}
}

// TestUnpackMac: files that macOS adds do not hide the extension's folder.
func TestUnpackMac(t *testing.T) {
	file := zipOf(t, entry{name: "x/gemini-extension.json", content: manifestText}, entry{name: ".DS_Store", content: "x"},
		entry{name: "__MACOSX/x/._gemini-extension.json", content: "x"})
	got, err := Fetch(t.Context(), Source{Kind: Archive, Location: file}, t.TempDir(), nil)
	if err != nil || filepath.Base(got.Dir) != "x" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCopiesNoOther: a folder that is no extension, such as a home folder, is not copied to find that out.
func TestCopiesNoOther(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "large"), "x")
	got, err := Fetch(t.Context(), Source{Kind: Local, Location: from}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(got.Dir); err != nil || len(entries) != 0 {
		t.Errorf("copied: %v, %v", entries, err)
	}
	if _, err := Fetch(t.Context(), Source{Kind: Local, Location: filepath.Join(from, "gone")}, t.TempDir(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a folder that is gone: %v", err)
	}
}

// TestUnpackRefuses: each attack is refused with the entry's name, and nothing is written outside.
func TestUnpackRefuses(t *testing.T) {
	ok := entry{name: "gemini-extension.json", content: manifestText}
	for what, attack := range map[string]struct {
		entries []entry
		want    string
		tarOnly bool
	}{
		"parent":            {[]entry{ok, {name: "../evil", content: "x"}}, "../evil", false},
		"hidden parent":     {[]entry{ok, {name: "a/../../evil", content: "x"}}, "evil", false},
		"absolute":          {[]entry{ok, {name: "/evil", content: "x"}}, "/evil", false},
		"drive":             {[]entry{ok, {name: "C:/evil", content: "x"}}, "C:/evil", false},
		"backslash":         {[]entry{ok, {name: `..\evil`, content: "x"}}, "evil", false},
		"stream":            {[]entry{ok, {name: "a:b", content: "x"}}, "a:b", false},
		"device name":       {[]entry{ok, {name: "docs/NUL.txt", content: "x"}}, "NUL", false},
		"control character": {[]entry{ok, {name: "a\x1b[2Jb", content: "x"}}, "invisible", false},
		"link out":          {[]entry{ok, {name: "l", link: "../../etc/passwd"}}, `"l"`, false},
		"link absolute":     {[]entry{ok, {name: "l", link: "/etc/passwd"}}, `"l"`, false},
		"link by a link":    {[]entry{ok, {name: "a", link: "."}, {name: "b", link: "a/.."}, {name: "c", link: "b/../.."}}, "link", false},
		"write by a link":   {[]entry{ok, {name: "d", link: "/tmp"}, {name: "d/evil", content: "x"}}, "d", false},
		"write by a link 2": {[]entry{ok, {name: "d/evil", content: "x"}, {name: "d", link: ".."}}, "d", false},
		"hard link":         {[]entry{ok, {name: "h", link: "/etc/passwd", hard: true}}, "hard link", true},
		"device":            {[]entry{ok, {name: "dev", mode: fs.ModeDevice | fs.ModeCharDevice}}, `"dev"`, true},
		"pipe":              {[]entry{ok, {name: "pipe", mode: fs.ModeNamedPipe}}, `"pipe"`, true},
		"setuid":            {[]entry{ok, {name: "su", content: "x", mode: fs.ModeSetuid | 0o755}}, `"su"`, false},
		"twice":             {[]entry{ok, {name: "a", content: "1"}, {name: "a", content: "2"}}, "twice", false},
		"case":              {[]entry{ok, {name: "docs/a", content: "1"}, {name: "Docs/b", content: "2"}}, "collides", false},
		"case of manifest":  {[]entry{ok, {name: "Gemini-Extension.json", content: "{}"}}, "collides", false},
		"file is folder":    {[]entry{ok, {name: "a", content: "1"}, {name: "a/b", content: "2"}}, "a", false},
		"git":               {[]entry{ok, {name: ".git/config", content: "[core]\nfsmonitor=evil"}}, ".git/config", false},
		"git in capitals":   {[]entry{ok, {name: "a/.GIT/config", content: "x"}}, ".GIT", false},
		"ratio":             {[]entry{ok, {name: "zeros", content: strings.Repeat("\x00", 20<<20)}}, "times its size", false},
		"deep":              {[]entry{ok, {name: strings.Repeat("d/", 60) + "x", content: "x"}}, "deep", false},
	} {
		files := []string{tarOf(t, attack.entries...)}
		if !attack.tarOnly {
			files = append(files, zipOf(t, attack.entries...))
		}
		for _, file := range files {
			work := filepath.Join(t.TempDir(), "a", "b")
			must(t, os.MkdirAll(work, 0o700))
			got, err := Fetch(t.Context(), Source{Kind: Archive, Location: file}, work, nil)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), attack.want) {
				t.Errorf("%s in %s: %v (%+v), want it refused naming %q", what, filepath.Base(file), err, got, attack.want)
			}
			left, _ := os.ReadDir(filepath.Dir(work))
			if _, err := os.Stat("/evil"); err == nil || len(left) != 1 {
				t.Errorf("%s: written outside: %v", what, left)
			}
		}
	}
}

// TestUnpackBounds: limits of counts and sizes, and directories that lie about them.
func TestUnpackBounds(t *testing.T) {
	many := make([]entry, 40)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("f%d", i), content: "0123456789"}
	}
	for what, l := range map[string]Limits{
		"one entry too many": {Files: 30, Depth: 9, FileSize: 1 << 20, Total: 1 << 20, Archive: 1 << 20, Ratio: 99},
		"in all":             {Files: 99, Depth: 9, FileSize: 1 << 20, Total: 300, Archive: 1 << 20, Ratio: 99},
		"may have":           {Files: 99, Depth: 9, FileSize: 1 << 20, Total: 1 << 20, Archive: 100, Ratio: 99},
	} {
		for _, file := range []string{zipOf(t, many...), tarOf(t, many...)} {
			if err := unpack(file, t.TempDir(), &l); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	deep := []entry{{name: "a/b/c/d/e/f", content: "x"}, {name: "1/2/3/4/5/6/7", content: "x"}}
	for _, file := range []string{zipOf(t, deep...), tarOf(t, deep...)} {
		if err := unpack(file, t.TempDir(), &Limits{Files: 12, Depth: 9, FileSize: 9, Total: 9, Archive: 1 << 20, Ratio: 9}); !errors.Is(err, ErrRefused) {
			t.Errorf("13 entries, 11 of them folders that only the names of others tell of: %v", err)
		}
	}
	data, err := os.ReadFile(zipOf(t, many...))
	must(t, err)
	for cut := 1; cut < len(data); cut += len(data)/50 + 1 {
		if err := unpack(saved(t, "cut.zip", data[:cut]), t.TempDir(), nil); err == nil {
			t.Errorf("an archive cut at %d of %d bytes was taken", cut, len(data))
		}
	}
}

// FuzzUnpack: any bytes are unpacked or refused, and nothing lies outside or leads there. Bytes without an archive's
// beginning are used as the inside of a .tar.gz.
func FuzzUnpack(f *testing.F) {
	for _, file := range []string{
		zipOf(f, entry{name: "a/b", content: "x"}, entry{name: "l", link: "a"}),
		tarOf(f, entry{name: "a/b", content: "x"}, entry{name: "l", link: "a"}, entry{name: "../e", content: "x"}),
	} {
		data, err := os.ReadFile(file)
		must(f, err)
		f.Add(data)
	}
	for _, file := range []string{
		tarOf(f, entry{name: "a/b", content: "x"}, entry{name: "l", link: "a"}, entry{name: "a/c/", mode: fs.ModeDir}),
		tarOf(f, entry{name: "1/2/3/4/5/6/7/8/9", content: "x"}, entry{name: "A/2/3/4/5/6/7/8/9", link: "../../x"}, entry{name: "b/2/3/4/5/6/7/8/9/0", content: "x"}),
	} {
		packed, err := os.Open(file)
		must(f, err)
		unpacked, err := gzip.NewReader(packed)
		must(f, err)
		data, err := io.ReadAll(unpacked)
		must(f, errors.Join(err, packed.Close()))
		f.Add(data)
	}
	small := Limits{Files: 50, Depth: 9, FileSize: 1 << 16, Total: 1 << 16, Archive: 1 << 20, Ratio: 100}
	f.Fuzz(func(t *testing.T, data []byte) {
		base := t.TempDir()
		file, to := filepath.Join(base, "in"), filepath.Join(base, "to")
		if !bytes.HasPrefix(data, []byte("PK")) && !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			var packed bytes.Buffer
			w, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
			must(t, err)
			_, err = w.Write(data)
			must(t, errors.Join(err, w.Close()))
			data = packed.Bytes()
		}
		must(t, os.WriteFile(file, data, 0o600))
		must(t, os.Mkdir(to, 0o700))
		err := unpack(file, to, &small)
		if left, _ := os.ReadDir(base); len(left) != 2 {
			t.Fatalf("written outside: %v", left)
		}
		if err == nil {
			must(t, checkTree(to, &small))
		}
	})
}
