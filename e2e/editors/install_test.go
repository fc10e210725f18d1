package editors

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// pollux runs the pollux under test as the bench's user.
func (b *bench) pollux(args ...string) string {
	b.Helper()
	cmd := exec.Command(binary(), args...)
	cmd.Env, cmd.Dir = b.env, b.project
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// bare starts an editor as its user does: the plugin is only where it was
// installed. What lets the test ask is the user's own.
func bare(f flavour, program string) flavour {
	start := map[string]func(b *bench) []string{
		"neovim": func(b *bench) []string { return []string{program, "--listen", b.root + "/n"} },
		"vim": func(b *bench) []string {
			b.write("../.vimrc", vimrc)
			return []string{program}
		},
		"emacs": func(b *bench) []string {
			b.write("../.emacs.d/init.el", "(require 'server)\n(setq inhibit-startup-screen t server-socket-dir \""+b.root+"/r\" server-name \"s\")\n(server-start)\n")
			return []string{program, "-nw"}
		},
	}[f.name]
	f.start = func(_ *testing.T, b *bench, files []string) []string { return append(start(b), files...) }
	if f.name == "emacs" {
		f.running = "(if (bound-and-true-p pollux--ready) 1 0)"
	}
	return f
}

// hidePollux takes the pollux under test out of PATH.
func (b *bench) hidePollux() {
	for i, v := range b.env {
		b.env[i] = strings.ReplaceAll(v, filepath.Dir(binary())+":", "")
	}
}

// What install writes is what the real editor finds, without any line in the
// user's own files; uninstall leaves nothing.
func TestInstalled(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]flavour{"neovim": bare(neovim(t), "nvim"), "vim": bare(vim(t), "vim"), "emacs": bare(emacs(t), "emacs")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, f, map[string]string{"a": "a\n"})
			if name == "vim" { // as people keep their dotfiles
				b.write("../dotfiles/vim/keep", "")
				if err := os.Symlink("dotfiles/vim", filepath.Join(b.root, ".vim")); err != nil {
					t.Fatal(err)
				}
			}
			if out := b.pollux("install", name); !strings.Contains(out, name+": ") {
				t.Error(out)
			}
			if out := b.pollux("install", "--list"); !strings.Contains(out, "equipped by") {
				t.Error(out)
			}
			b.hidePollux() // the plugin knows which pollux it was
			b.open("a")
			if data, err := os.ReadFile(b.file()); err != nil || !strings.Contains(string(data), `"name":"`+name+`"`) {
				t.Errorf("%s, %v", data, err)
			}
			if name != "emacs" {
				b.ex("help pollux-settings")
				b.is("expand('%:t') . (getline('.') =~ 'pollux-settings')", "pollux.txt1")
				b.is("&buftype", "help")
			}
			if out := b.pollux("uninstall", name); strings.Contains(out, "leave ") {
				t.Error(out)
			}
			_ = filepath.WalkDir(b.root, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() && strings.Contains(d.Name(), "pollux") && !strings.HasPrefix(path, b.root+"/s/") && !strings.HasSuffix(path, ".elc") {
					t.Errorf("%s is left", path)
				}
				return nil
			})
		})
	}
}

// On a home that is mounted read-only nothing is half-written, and each
// command says what could not be and what to do; what needs no writing works.
func TestReadOnlyHome(t *testing.T) {
	t.Parallel()
	bwrap := peers.Need(t, peers.Bubblewrap)
	b := newBench(t, flavour{}, map[string]string{"a": "a\n"})
	readOnly := func(wantCode int, wantError string, args ...string) string {
		t.Helper()
		before := snapshot(t, b.root)
		cmd := exec.Command(bwrap, append([]string{"--dev-bind", "/", "/", "--ro-bind", b.root, b.root, "--chdir", b.project, binary()}, args...)...)
		var out, errs strings.Builder
		cmd.Env, cmd.Stdout, cmd.Stderr = b.env, &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != wantCode {
			t.Errorf("%v: %v, want exit code %d\n%s%s", args, err, wantCode, &out, &errs)
		}
		if wantError == "" && errs.Len() > 0 || !strings.Contains(errs.String(), wantError) || wantError != "" && !strings.Contains(errs.String(), "read-only file system") {
			t.Errorf("%v says %q", args, &errs)
		}
		if after := snapshot(t, b.root); after != before {
			t.Errorf("%v changed\n%s\nto\n%s", args, before, after)
		}
		return out.String()
	}
	const again = "make that folder yours and writable, "
	readOnly(3, again+"then install again", "install", "neovim", "vim", "emacs")
	readOnly(3, "ide: ", "setup", "--only", "ide")
	readOnly(3, again+"and run setup again", "setup")
	readOnly(1, "", "detect", "--json")
	if out := readOnly(0, "", "install", "--list"); !strings.Contains(out, "not equipped: pollux install neovim") {
		t.Error(out)
	}
	readOnly(0, "", "install", "--dry-run", "neovim")
	b.pollux("install", "neovim", "vim", "emacs")
	b.pollux("setup")
	readOnly(0, "", "install", "neovim") // nothing is to be written
	readOnly(3, "make its folder yours and writable, then uninstall again", "uninstall", "neovim", "vim", "emacs")
	readOnly(3, again+"and run setup again", "setup", "--undo")
	readOnly(0, "", "setup", "--only", "ide")
	b.pollux("uninstall", "neovim", "vim", "emacs")
	b.pollux("setup", "--undo")
}

// snapshot lists all below dir: names, modes, links and contents.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data := []byte(nil)
		if info.Mode().IsRegular() {
			data, err = os.ReadFile(path)
		}
		fmt.Fprintf(&out, "%s %v %x\n", path, info.Mode(), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The folders of the repository are plugins as managers take them: pathogen
// and the editors' own packages themselves; the others by what they do with
// the settings that the documentation gives them.
func TestManagers(t *testing.T) {
	t.Parallel()
	pathogen := peers.Need(t, peers.Pathogen)
	for _, tt := range []struct {
		name    string
		flavour flavour
		rc      string // of the user's, with ROOT for the repository
		file    string // its name below the home
		copy    string // a place below the home for a copy of the plugin
	}{
		{"lazy.nvim", neovim(t), "vim.go.loadplugins = false\nvim.api.nvim_create_autocmd('UIEnter', { once = true, callback = function()\n" +
			"  local p = { dir = 'ROOT' }\n  vim.opt.rtp:append(p.dir .. '/plugins/nvim') vim.cmd('runtime plugin/pollux.lua')\nend })\n", "c/nvim/init.lua", ""},
		{"packer", neovim(t), "vim.opt.rtp:append('ROOT/plugins/nvim')\n", "c/nvim/init.lua", ""},
		{"vim-plug in Neovim", neovim(t), "set rtp^=ROOT/plugins/nvim\n", "c/nvim/init.vim", ""},
		{"vim-plug", vim(t), vimrc + "set rtp^=ROOT/plugins/vim\n", ".vimrc", ""},
		{"pathogen", vim(t), vimrc + "source " + pathogen + "\nexecute pathogen#infect()\n", ".vimrc", ".vim/bundle/pollux"},
		{"packages", vim(t), vimrc, ".vimrc", ".vim/pack/x/start/pollux"},
		{"packages in Neovim", neovim(t), "\n", "c/nvim/init.vim", "d/nvim/site/pack/x/start/pollux"},
		{"packadd", vim(t), vimrc + "packadd! pollux\n", ".vimrc", ".vim/pack/x/opt/pollux"},
		{"packadd in Neovim", neovim(t), "vim.cmd('packadd! pollux')\n", "c/nvim/init.lua", "d/nvim/site/pack/x/opt/pollux"},
		{"packadd, late", vim(t), vimrc + "autocmd VimEnter * call timer_start(50, {-> execute('packadd pollux')})\n", ".vimrc", ".vim/pack/x/opt/pollux"},
		{"packadd in Neovim, late", neovim(t), "vim.defer_fn(function() vim.cmd('packadd pollux') end, 200)\n", "c/nvim/init.lua", "d/nvim/site/pack/x/opt/pollux"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			program := map[string]string{"neovim": "nvim", "vim": "vim"}[tt.flavour.name]
			b := newBench(t, bare(tt.flavour, program), map[string]string{"a": "a\n"})
			start := b.f.start
			b.f.start = func(t *testing.T, b *bench, files []string) []string {
				args := start(t, b, files)
				b.write("../"+tt.file, strings.ReplaceAll(tt.rc, "ROOT", repository(t)))
				return args
			}
			if tt.copy != "" {
				if err := os.CopyFS(filepath.Join(b.root, tt.copy), os.DirFS(filepath.Join(repository(t), "plugins", program))); err != nil {
					t.Fatal(err)
				}
			}
			b.open("a")
			b.sees(b.connect(), "a 1:1")
			if tt.copy != "" { // a copy, in which the editor may write
				b.ex("silent! helptags ALL | help :Pollux")
				b.is("&buftype . expand('%:t')", "helppollux.txt")
			}
		})
	}
}
