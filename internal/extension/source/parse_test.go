package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParse (SPEC M-2): every form of a source.
func TestParse(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "folder", "sub", "x"), "")
	write(t, filepath.Join(dir, "real", "repo", "x"), "")
	write(t, filepath.Join(dir, "a.zip"), "PK\x05\x06"+strings.Repeat("\x00", 18))
	gh := func(ref, sub string) Source {
		return Source{Kind: Git, Location: "https://github.com/owner/repo", GitHub: "owner/repo", Ref: ref, Subdir: sub}
	}
	for text, want := range map[string]Source{
		"owner/repo":                                         gh("", ""),
		"github:owner/repo":                                  gh("", ""),
		"github:owner/repo.git#v1":                           gh("v1", ""),
		"https://github.com/owner/repo":                      gh("", ""),
		"https://github.com/owner/repo/tree/v1/packages/a":   gh("v1", "packages/a"),
		"https://github.com/owner/repo/tree/main":            gh("main", ""),
		"https://github.com/owner/repo/blob/v1/a/x.json":     gh("v1", "a"),
		"https://github.com/owner/repo/commit/0123456":       gh("0123456", ""),
		"https://github.com/owner/repo/releases/tag/v1.0":    gh("v1.0", ""),
		"https://github.com/owner/repo.git":                  {Kind: Git, Location: "https://github.com/owner/repo.git", GitHub: "owner/repo"},
		"git@github.com:owner/repo.git":                      {Kind: Git, Location: "git@github.com:owner/repo.git", GitHub: "owner/repo"},
		"git@example.com:team/repo.git":                      {Kind: Git, Location: "git@example.com:team/repo.git"},
		"ssh://git@example.com:2222/team/repo.git":           {Kind: Git, Location: "ssh://git@example.com:2222/team/repo.git"},
		"gitlab:group/sub/repo":                              {Kind: Git, Location: "https://gitlab.com/group/sub/repo"},
		"https://gitlab.com/group/repo/-/tree/v1/packages/a": {Kind: Git, Location: "https://gitlab.com/group/repo", Ref: "v1", Subdir: "packages/a"},
		"https://example.com/team/repo#v2":                   {Kind: Git, Location: "https://example.com/team/repo", Ref: "v2"},
		"file:///srv/repo":                                   {Kind: Git, Location: "file:///srv/repo"},
		"sso://team/repo":                                    {Kind: Git, Location: "sso://team/repo"},
		"folder":                                             {Kind: Local, Location: filepath.Join(dir, "folder")},
		"./folder/sub":                                       {Kind: Local, Location: filepath.Join(dir, "folder", "sub")},
		filepath.Join(dir, "folder"):                         {Kind: Local, Location: filepath.Join(dir, "folder")},
		"real/repo":                                          {Kind: Local, Location: filepath.Join(dir, "real", "repo")},
		"a.zip":                                              {Kind: Archive, Location: filepath.Join(dir, "a.zip")},
	} {
		got, err := Parse(text, dir, Wish{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	got, err := Parse("folder", dir, Wish{Subdir: "sub"})
	if err != nil || got.Location != filepath.Join(dir, "folder", "sub") || got.Subdir != "" {
		t.Errorf("a folder with --path: %+v, %v", got, err)
	}
}

// TestParseRefuses: text that git or the file system could misread.
func TestParseRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "text.txt"), "no archive")
	write(t, filepath.Join(dir, "folder", "x"), "")
	for text, want := range map[string]string{
		"": "no source is given",
		"https://ghp_abcDEF0123456789@github.com/o/r": `use "https://github.com/o/r"`,
		"--upload-pack=touch x":                       "starts with a dash",
		"-u":                                          "write ./-u",
		"ext::sh -c touch% x":                         "helper program",
		"fd::17":                                      "helper program",
		"::1":                                         "address of a machine",
		"[fe80::1]":                                   "address of a machine",
		"2001:db8::7/x.git":                           "address of a machine",
		"ssh://-oProxyCommand=touch/x":                "", // whatever the message, it must be refused
		"https://user:secret@example.com/r":           "credential helper",
		"https://example.com/\x00":                    "control character",
		"https:///nohost":                             "names no host",
		"file://otherhost/x":                          "this machine",
		"file://":                                     "this machine",
		"github:owner":                                "owner/repo",
		"github:owner/../repo":                        "does not name",
		"github:owner/-repo":                          "does not name",
		"https://github.com/owner":                    "names no repository",
		"https://github.com/o/r/issues/7":             "not a repository, a folder or a release",
		"text.txt":                                    "neither a .zip nor a .tar.gz",
		"nowhere":                                     "no file or folder",
		"../no/such/thing":                            "no file or folder",
	} {
		got, err := Parse(text, dir, Wish{})
		if err == nil {
			t.Errorf("%q passed: %+v", text, got)
		} else if !strings.Contains(err.Error(), want) || !errors.Is(err, ErrUsage) && !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, ref := range []string{"-x", "--upload-pack=x", "a:b", "+a", "a..b", "a@{1}", "a~1", "a^", "a b", "a*", "/a", "a/", "a.lock", "a\\b"} {
		if got, err := Parse("owner/repo", dir, Wish{Ref: ref}); err == nil {
			t.Errorf("--ref %q passed: %+v", ref, got)
		}
	}
	for _, sub := range []string{"..", "../x", "a/../../x", "/etc", ".git", ".GIT/hooks", "-x"} {
		if got, err := Parse("owner/repo", dir, Wish{Subdir: sub}); err == nil {
			t.Errorf("--path %q passed: %+v", sub, got)
		}
	}
	for _, w := range []Wish{{Ref: "v1"}} {
		if _, err := Parse("folder", dir, w); !errors.Is(err, ErrUsage) {
			t.Errorf("a folder with %+v: %v", w, err)
		}
	}
	if _, err := Parse("github:o/r#v1", dir, Wish{Ref: "v2"}); !errors.Is(err, ErrUsage) {
		t.Errorf("two refs: %v", err)
	}
	if _, err := Parse("https://github.com/o/r/tree/v1/a", dir, Wish{Subdir: "b"}); !errors.Is(err, ErrUsage) {
		t.Errorf("two folders: %v", err)
	}
}

// A password or token in an address is refused in any form, and never repeated (SPEC §11.8).
func TestSecretsInAddresses(t *testing.T) {
	for _, text := range []string{
		"https://user:s3cr3t@example.com/r", "https://user:s3cr3t%zz@example.com/r", "https://user:s3cr3t/x@example.com/r", "ssh://git:s3cr3t@example.com/r",
		"https://:s3cr3t@example.com/r#main", "user:s3cr3t@example.com/r", "git@user:s3cr3t@example.com:o/r", "https://example.com/r?token=s3cr3t",
		"https://example.com/r?x=1&private_token=s3cr3t", "https://ghp_s3cr3t@github.com/o/r", "https://x-token-auth@bitbucket.org/o/r", "git+ssh://git:s3cr3t@h/r",
		"https://u:s3cr3t@example.com/r.zip", "https://u:s3cr3t@github.com/o/r/tree/main/a",
	} {
		got, err := Parse(text, t.TempDir(), Wish{})
		if !errors.Is(err, ErrUsage) || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "credential helper") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if s, err := Parse("https://me@bitbucket.org/o/r", t.TempDir(), Wish{}); err != nil || s.Location != "https://me@bitbucket.org/o/r" {
		t.Errorf("a user's name: %+v, %v", s, err)
	}
}

// An archive's address is no repository; the message says what to do (SPEC M-2).
func TestAddressOfArchive(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com/x/tools.zip":                          "download it and install the file: pollux extensions install ./tools.zip",
		"https://example.com/x/tools.TAR.GZ?x=y":                   "./tools.TAR.GZ",
		"http://example.com/tools.tgz":                             "./tools.tgz",
		"https://github.com/o/r/archive/refs/tags/v1.zip":          "pollux extensions install o/r (--ref NAME",
		"https://github.com/o/r/releases/download/v1/r-1.0.tar.gz": "pollux extensions install o/r (--ref NAME",
		"https://gitlab.com/g/r/-/archive/main/r-main.tar.bz2":     "./r-main.tar.bz2",
	} {
		if got, err := Parse(text, t.TempDir(), Wish{}); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// FuzzParse: whatever is typed, git never gets an option, a helper or a refspec.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"owner/repo", "git@h:p", "https://github.com/o/r/tree/a/b", "ext::x", "-x", "file:///x#y", "gitlab:a/b/c"} {
		f.Add(s, "main", "sub")
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, ref, sub string) {
		s, err := Parse(text, dir, Wish{Ref: ref, Subdir: sub})
		if err != nil || s.Kind != Git {
			return
		}
		for _, v := range []string{s.Location, s.Ref, s.Subdir} {
			if strings.HasPrefix(v, "-") {
				t.Errorf("%q: %+v", text, s)
			}
		}
		if !gitScheme().MatchString(s.Location) && !scpForm().MatchString(s.Location) {
			t.Errorf("%q gives git the address %q", text, s.Location)
		}
		if strings.ContainsAny(s.Ref, ":+*?[ ") || !filepath.IsLocal(s.Subdir) && s.Subdir != "" {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func write(t testing.TB, file, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o600))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
