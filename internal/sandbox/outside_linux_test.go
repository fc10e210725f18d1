package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
)

// A bait is a home folder with a workspace, and a program that leaves a mark in the home folder if anybody runs it
// outside a sandbox. Inside it has another home folder.
type bait struct {
	t                     *testing.T
	home, workspace, mark string
	program               string // the text of the program
}

func newBait(t *testing.T) *bait {
	t.Helper()
	home := paths.Real(t.TempDir())
	b := &bait{t: t, home: home, workspace: filepath.Join(home, "work"), mark: filepath.Join(home, "mark")}
	b.program = "#!/bin/sh\necho x 2>/dev/null >" + b.mark + "\necho '[\"/usr/bin/python3\",\"" + home + "/private\",\"/usr\"]'\n"
	b.put("private/notes", "a secret")
	b.put("work/README", "")
	t.Setenv("HOME", home)
	for _, name := range []string{"PYENV_VERSION", "PYENV_ROOT", "ASDF_DIR", "VIRTUAL_ENV"} {
		t.Setenv(name, "")
	}
	b.path()
	return b
}

// put writes a program or a file below the home folder; "-> x" is a link.
func (b *bait) put(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.home, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if to, isLink := strings.CutPrefix(content, "-> "); isLink {
		err = errors.Join(err, os.Symlink(to, path))
	} else {
		err = errors.Join(err, os.WriteFile(path, []byte(content), 0o700))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// path sets PATH to folders below the home folder, and the system's.
func (b *bait) path(dirs ...string) {
	for i, dir := range dirs {
		if dir != "." {
			dirs[i] = filepath.Join(b.home, dir)
		}
	}
	b.t.Setenv("PATH", strings.Join(append(dirs, "/usr/bin", "/bin"), ":"))
}

// holds runs and explains a command, and reports a program that ran outside, or a part of the home folder that should
// be hidden.
func (b *bait) holds(s *Sandbox, c Command, shown ...string) (*Result, error) {
	b.t.Helper()
	c.Workspace = b.workspace
	c.Limits.Time = testTime
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*testTime)
	defer cancel()
	plan, explainErr := s.Explain(Policy{}, c)
	if exists(b.mark) {
		b.t.Errorf("%q: to explain it, a program ran outside", c.Args)
	}
	r, err := s.Run(ctx, Policy{}, c)
	if exists(b.mark) {
		b.t.Errorf("%q: a program ran outside", c.Args)
	}
	if (explainErr == nil) != (err == nil) {
		b.t.Errorf("%q: explained with %v, run with %v", c.Args, explainErr, err)
	}
	if plan == nil {
		return r, err
	}
	for _, p := range plan.Paths {
		rel, below := strings.CutPrefix(p.Path, b.home+"/")
		if p.Access == AccessLink || p.Path != b.home && !below || p.Access == AccessPrivate {
			continue
		}
		fine := false
		for _, allowed := range shown {
			fine = fine || paths.Within(allowed, rel)
		}
		if !fine {
			b.t.Errorf("%q is shown %s for %q", p.Path, p.Access, c.Args)
		}
	}
	return r, err
}

// TestNothingRunsOutside: pollux runs no program that a user, a workspace or an extension can write in order to find
// out about it, whatever its name and place (SPEC S-1).
func TestNothingRunsOutside(t *testing.T) {
	pyenv := func(b *bait) {
		b.put("work/.pyenv/shims/python3", b.program)
		b.put("work/.pyenv/bin/pyenv", b.program)
		b.put("work/.pyenv/libexec/pyenv", b.program)
		b.put("work/.pyenv/version", "3.12\n")
		b.put("work/.pyenv/versions/3.12/bin/python3", b.program)
		b.path("work/.pyenv/shims", "work/.pyenv/bin")
	}
	for name, test := range map[string]struct {
		lay   func(b *bait)
		args  []string
		shows []string
	}{
		"a script called python":  {func(b *bait) { b.put("work/python", b.program) }, []string{"./python"}, []string{"work/python"}},
		"a script called python3": {func(b *bait) { b.put("work/python3", b.program) }, []string{"./python3", "-c", "1"}, []string{"work/python3"}},
		"a version":               {func(b *bait) { b.put("work/python3.12", b.program) }, []string{"./python3.12"}, []string{"work/python3.12"}},
		"a script called node":    {func(b *bait) { b.put("work/node", b.program) }, []string{"./node", "-e", "1"}, []string{"work/node"}},
		"a script called nodejs":  {func(b *bait) { b.put("work/nodejs", b.program) }, []string{"./nodejs"}, []string{"work/nodejs"}},
		"in PATH":                 {func(b *bait) { b.put("work/bin/python3", b.program); b.path("work/bin") }, []string{"python3"}, []string{"work/bin/python3"}},
		"a package's node":        {func(b *bait) { b.put("work/node_modules/.bin/node", b.program); b.path("work/node_modules/.bin") }, []string{"node"}, []string{"work/node_modules/.bin/node"}},
		"first line": {func(b *bait) {
			b.put("work/python3", b.program)
			b.put("work/tool", "#!"+b.workspace+"/python3\n")
		}, []string{"./tool"}, []string{"work/tool", "work/python3"}},
		"first line by env": {func(b *bait) {
			b.put("work/bin/python3", b.program)
			b.put("work/tool", "#!/usr/bin/env python3\n")
			b.path("work/bin")
		}, []string{"./tool"}, []string{"work/tool", "work/bin/python3"}},
		"first line by env -S": {func(b *bait) {
			b.put("work/bin/node", b.program)
			b.put("work/tool", "#!/usr/bin/env -S -u C A=b node --x\n")
			b.path("work/bin")
		}, []string{"./tool"}, []string{"work/tool", "work/bin/node"}},
		"first lines one after the other": {func(b *bait) {
			b.put("work/python3", b.program)
			b.put("work/two", "#!"+b.workspace+"/python3\n")
			b.put("work/one", "#!"+b.workspace+"/two\n")
		}, []string{"./one"}, []string{"work/one", "work/two", "work/python3"}},
		"a shim of the workspace": {pyenv, []string{"python3"}, []string{"work/.pyenv/versions/3.12"}},
		"a pyenv in PATH": {func(b *bait) {
			b.put(".pyenv/shims/python3", "#!/bin/sh\n")
			b.put(".pyenv/version", "3.12")
			b.put(".pyenv/versions/3.12/bin/python3", "#!/bin/sh\n")
			b.put("work/bin/pyenv", b.program)
			b.path("work/bin", ".pyenv/shims")
		}, []string{"python3"}, []string{".pyenv/versions/3.12"}},
		"an asdf in PATH": {func(b *bait) {
			b.put(".asdf/shims/node", "#!/bin/sh\n# asdf-plugin: nodejs 20\n")
			b.put(".asdf/installs/nodejs/20/bin/node", "#!/bin/sh\n")
			b.put("work/bin/asdf", b.program)
			b.path("work/bin", ".asdf/shims")
		}, []string{"node"}, []string{".asdf/installs/nodejs/20"}},
		"a mise that is the workspace's": {func(b *bait) {
			b.put("work/mise/shims/python3", "-> ../mise")
			b.put("work/mise/mise", b.program)
			b.put("work/mise/installs/python/3.12/bin/python3", b.program)
			b.path("work/mise/shims", "work/mise")
		}, []string{"python3"}, []string{"work/mise/installs/python/3.12"}},
		"a link to a script": {func(b *bait) {
			b.put("work/run", b.program)
			b.put("work/.venv/bin/python3", "-> ../../run")
			b.path("work/.venv/bin")
		}, []string{"python3"}, []string{"work/run"}},
		"a virtual environment's": {func(b *bait) {
			b.put("work/.venv/bin/python3", b.program)
			b.put("work/.venv/pyvenv.cfg", "home = /usr/bin\n")
			b.path("work/.venv/bin")
		}, []string{"python3"}, []string{"work/.venv"}},
		"the working folder in PATH": {func(b *bait) {
			b.put("work/python3", b.program)
			b.path(".")
			b.t.Chdir(b.workspace)
		}, []string{"python3", "-c", "1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBait(t)
			test.lay(b)
			r, err := b.holds(New(&Options{Home: b.home}), Command{Args: test.args, Dir: b.workspace}, test.shows...)
			if err != nil || r.Code != 0 {
				t.Errorf("%v %+v", err, r)
			}
		})
	}
}

// TestChainOfTools: a tool that may write the workspace replaces the interpreter there. The next tool, without
// permissions, runs that interpreter only inside.
func TestChainOfTools(t *testing.T) {
	b := newBait(t)
	b.put("work/.venv/bin/python3", "-> /usr/bin/python3")
	b.put("work/.venv/pyvenv.cfg", "home = /usr/bin\n")
	b.put("bait", b.program)
	b.path("work/.venv/bin")
	s := New(&Options{Home: b.home})
	script := "cd .venv/bin && rm python3 && printf '%s' \"$1\" >python3 && chmod +x python3"
	r := runIn(t, s, Policy{Write: permission.Workspace}, Command{Args: []string{"sh", "-c", script, "sh", b.program}, Workspace: b.workspace, Dir: b.workspace})
	if data, _ := os.ReadFile(filepath.Join(b.workspace, ".venv/bin/python3")); r.Code != 0 || string(data) != b.program {
		t.Fatalf("the interpreter was not replaced: %d %s %q", r.Code, r.Stderr, data)
	}
	got, err := b.holds(s, Command{Args: []string{"python3", "tool.py"}, Dir: b.workspace}, "work/.venv")
	if err != nil || !strings.Contains(string(got.Stdout), "/usr/bin/python3") {
		t.Errorf("%v %+v", err, got)
	}
}

// A widening is an attempt to have more shown than an installation.
type widening struct {
	lay    func(b *bait)
	shows  []string
	refuse string // "" if the program starts
}

func environments() map[string]widening {
	return map[string]widening{
		"a home that is none": {func(b *bait) {
			b.put("work/.venv/pyvenv.cfg", "home = "+b.home+"/private\n")
			b.put("work/.venv/bin/python3", "-> /usr/bin/python3")
		}, []string{"work/.venv"}, "home"},
		"a home of secrets": {func(b *bait) {
			b.put(".ssh/id", "key")
			b.put("work/.venv/pyvenv.cfg", "home = "+b.home+"/.ssh\n")
			b.put("work/.venv/bin/python3", "-> /usr/bin/python3")
		}, []string{"work/.venv"}, "home"},
		"a home with dots": {func(b *bait) {
			b.put("work/.venv/pyvenv.cfg", "home = /usr/bin/../.."+b.home+"/private\n")
			b.put("work/.venv/bin/python3", "-> /usr/bin/python3")
		}, []string{"work/.venv"}, "home"},
		"a relative home": {func(b *bait) {
			b.put("work/.venv/pyvenv.cfg", "home = ../../private\n")
			b.put("work/.venv/bin/python3", "-> /usr/bin/python3")
		}, []string{"work/.venv"}, "home"},
		"a home that is a link": {func(b *bait) {
			b.put("work/fake/bin", "-> ../../private")
			b.put("work/fake/lib/python3.12/os.py", "")
			b.put("work/.venv/pyvenv.cfg", "home = "+b.workspace+"/fake/bin\n")
			b.put("work/.venv/bin/python3", "-> /usr/bin/python3")
		}, []string{"work/.venv"}, "home"},
		"a library that is a link": {func(b *bait) {
			b.put("private/python3.12/os.py", "")
			b.put("work/fake/lib", "-> ../../private")
			b.put("work/fake/bin/python3", "#!/bin/sh\n")
			b.put("work/.venv/pyvenv.cfg", "home = "+b.workspace+"/fake/bin\n")
			b.put("work/.venv/bin/python3", "#!/bin/sh\n")
		}, []string{"work/.venv", "work/fake"}, "home"},
		"an environment with a link in it": {func(b *bait) {
			b.put("work/.venv/pyvenv.cfg", "home = /usr/bin\n")
			b.put("work/.venv/lib", "-> ../../private")
			b.put("work/.venv/bin/python3", "#!/bin/sh\n")
		}, []string{"work/.venv"}, ""},
	}
}

func layoutsThatLie() map[string]widening {
	return map[string]widening{
		"an environment as large as the home folder": {func(b *bait) {
			b.put("pyvenv.cfg", "home = /usr/bin\n")
			b.put("bin/python3", "#!/bin/sh\n")
			b.path("bin")
		}, []string{"pyvenv.cfg", "bin"}, ""},
		"an environment as large as the workspace": {func(b *bait) {
			b.put("work/pyvenv.cfg", "home = /usr/bin\n")
			b.put("work/bin/python3", "#!/bin/sh\n")
			b.path("work/bin")
		}, []string{"work/pyvenv.cfg", "work/bin"}, ""},
		"a workspace that looks like Homebrew": {func(b *bait) {
			b.put("work/Cellar/python/3/bin/python3", "#!/bin/sh\n")
			b.path("work/Cellar/python/3/bin")
		}, []string{"work/Cellar/python/3"}, ""},
		"a workspace under versions": {func(b *bait) {
			b.workspace = filepath.Join(b.home, "versions/project")
			b.put("versions/project/bin/node", "#!/bin/sh\n")
			b.path("versions/project/bin")
		}, []string{"versions/project/bin"}, ""},
		"a version outside the versions": {func(b *bait) {
			b.put("work/.pyenv/shims/python3", "")
			b.put("work/.pyenv/version", "../../../private\n")
			b.put("work/.pyenv/versions/3.12/bin/python3", "#!/bin/sh\n")
			b.put("private/bin/python3", "#!/bin/sh\n")
			b.path("work/.pyenv/shims")
			b.t.Setenv("PATH", filepath.Join(b.workspace, ".pyenv/shims"))
		}, nil, "pyenv"},
		"a version that is a link": {func(b *bait) {
			b.put("work/.pyenv/shims/python3", "")
			b.put("work/.pyenv/version", "3.12")
			b.put("work/.pyenv/versions/3.12", "-> ../../../private")
			b.put("private/bin/python3", "#!/bin/sh\n")
			b.path("work/.pyenv/shims")
		}, []string{"private/bin/python3"}, ""},
		"a program that is a link to a folder's file": {func(b *bait) {
			b.put("private/run", "#!/bin/sh\n")
			b.put("work/.venv/bin/python3", "-> ../../../private/run")
		}, []string{"private/run"}, ""},
		"an interpreter in a secret store": {func(b *bait) {
			b.put(".ssh/id_rsa", "#!/bin/sh\nkey")
			b.put("work/.venv/bin/env", "#!/bin/sh\ncat .ssh/id_rsa")
			b.put("work/.venv/bin/python3", "#!"+b.workspace+"/.venv/bin/env "+b.home+"/.ssh/id_rsa\n")
		}, []string{"work/.venv"}, "secrets are kept"},
		"a secret store that a variable names": {func(b *bait) {
			b.put("other/key", "#!/bin/sh\nkey")
			b.t.Setenv("GNUPGHOME", filepath.Join(b.home, "other"))
			b.put("work/.venv/bin/python3", "#!/usr/bin/env -S --argv0="+b.home+"/x "+b.home+"/other/key\n")
		}, []string{"work/.venv"}, "secrets are kept"},
		"a link into a secret store": {func(b *bait) {
			b.put(".aws/credentials", "#!/bin/sh\nkey")
			b.put("work/.venv/bin/python3", "-> ../../../.aws/credentials")
		}, []string{"work/.venv"}, "secrets are kept"},
		"an interpreter that is no program": {func(b *bait) {
			b.put("private/notes", "executable, as every file of some file systems")
			b.put("work/.venv/bin/python3", "#!/usr/bin/env -S -u X "+b.home+"/private/notes\n")
		}, []string{"work/.venv"}, "is no program"},
		"a configuration that never ends": {func(b *bait) {
			b.put("work/.venv/bin/python3", "#!/bin/sh\n")
			if err := unix.Mkfifo(filepath.Join(b.workspace, ".venv/pyvenv.cfg"), 0o600); err != nil {
				b.t.Fatal(err)
			}
		}, []string{"work/.venv/bin/python3"}, ""},
		"a configuration without end": {func(b *bait) {
			b.put("work/.venv/bin/python3", "#!/bin/sh\n")
			b.put("work/.venv/pyvenv.cfg", "-> /dev/zero")
		}, []string{"work/.venv/bin/python3"}, ""},
		"a program that is a pipe": {func(b *bait) {
			b.put("work/.venv/bin/x", "")
			if err := unix.Mkfifo(filepath.Join(b.workspace, ".venv/bin/python3"), 0o700); err != nil {
				b.t.Fatal(err)
			}
		}, nil, ""},
	}
}

// TestNothingMoreIsShown: whatever files say about an interpreter, they show no more than a real installation (SPEC
// S-1, E-2).
func TestNothingMoreIsShown(t *testing.T) {
	all := environments()
	maps.Copy(all, layoutsThatLie())
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			b := newBait(t)
			b.path("work/.venv/bin")
			test.lay(b)
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, err = b.holds(New(&Options{Home: b.home}), Command{Args: []string{cmp.Or(map[bool]string{true: "node"}[strings.Contains(name, "under versions")], "python3"), "-c", "1"}, Dir: b.workspace}, test.shows...)
			}()
			select {
			case <-done:
			case <-time.After(testTime):
				t.Fatal("it hangs")
			}
			if test.refuse == "" && err != nil || test.refuse != "" && (!errors.Is(err, ErrCommand) || !strings.Contains(fmt.Sprint(err), test.refuse)) {
				t.Errorf("%v, want %q", err, test.refuse)
			}
		})
	}
}
