// Package peers finds the real programs that pollux is tested with, and says how to install missing ones. Production
// code never imports it.
package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RequireEnv is the environment variable that forbids skips: if it is "1", tests fail when a peer is missing.
const RequireEnv = "POLLUX_REQUIRE_PEERS"

// A Peer names one real program.
type Peer string

// The peers.
const (
	// Gemini is the published Gemini CLI, in the version that e2e/peers/package.json pins.
	Gemini Peer = "Gemini CLI"
	// Qwen is the published Qwen Code, in the version that e2e/peers/package.json pins.
	Qwen Peer = "Qwen Code"
	// Claude is the published Claude Code, in the version that e2e/peers/package.json pins; a native program.
	Claude Peer = "Claude Code"
	// Copilot, OpenCode and Codex are published agents that are too large for every run, in the versions that
	// e2e/peers/agents/package.json pins; All leaves them out.
	Copilot  Peer = "GitHub Copilot CLI"
	OpenCode Peer = "opencode"
	Codex    Peer = "Codex"
	// Node runs Gemini, Qwen, Conformance and Inspector; at least minNode.
	Node Peer = "Node"
	// Chromium is Chromium or Chrome.
	Chromium Peer = "Chromium"
	// Tmux is the terminal that tests drive the CLI in.
	Tmux Peer = "tmux"
	// Screen is another one, into which pollux types.
	Screen Peer = "screen"
	// Bubblewrap is the sandbox that ours is compared with.
	Bubblewrap Peer = "bubblewrap"
	// Conformance is MCP's own conformance suite, in the pinned version.
	Conformance Peer = "MCP conformance suite"
	// Inspector is the command line of MCP's inspector, in the pinned version.
	Inspector Peer = "MCP inspector"
	// Esbuild bundles the editor page, in the version that web/package.json pins.
	Esbuild Peer = "esbuild"
	// Neovim, Vim and Emacs are the editors that have plugins.
	Neovim Peer = "Neovim"
	Vim    Peer = "Vim"
	Emacs  Peer = "Emacs"
	// Micro has a plugin as well.
	Micro Peer = "micro"
	// Kakoune has one, too.
	Kakoune Peer = "kakoune"
	// Eglot is Emacs's LSP client, a separate package before Emacs 29.
	Eglot Peer = "eglot"
	// Pathogen is a plugin manager for Vim.
	Pathogen Peer = "vim-pathogen"
	// Treemacs and Neotree show trees of files in Emacs.
	Treemacs Peer = "treemacs"
	Neotree  Peer = "neotree"
)

// All returns the peers that every run needs, in the order of reports.
func All() []Peer {
	return []Peer{Node, Gemini, Qwen, Claude, Conformance, Inspector, Esbuild, Chromium, Tmux, Screen, Neovim, Vim, Emacs, Micro, Kakoune, Eglot, Pathogen, Treemacs, Neotree, Bubblewrap}
}

// Install returns a command or sentence that says how to install p on this machine.
func (p Peer) Install() string {
	switch p {
	case Gemini, Qwen, Claude, Conformance, Inspector:
		return "npm ci --prefix e2e/peers"
	case Copilot, OpenCode, Codex:
		return "npm ci --prefix e2e/peers/agents"
	case Node:
		return "npm ci --prefix e2e/peers/node"
	case Esbuild:
		return "npm ci --prefix web"
	case Chromium:
		return "apt-get install chromium (or install Chrome)"
	case Bubblewrap:
		return "apt-get install bubblewrap (Linux only)"
	case Tmux:
		return "apt-get install tmux (or brew install tmux)"
	case Screen:
		return "apt-get install screen (or brew install screen)"
	case Neovim:
		return "apt-get install neovim (or brew install neovim)"
	case Vim:
		return "apt-get install vim (or brew install vim)"
	case Emacs:
		return "apt-get install emacs-nox (or brew install emacs)"
	case Micro:
		return "apt-get install micro (or brew install micro)"
	case Kakoune:
		return "apt-get install kakoune (or brew install kakoune)"
	case Eglot:
		return "apt-get install elpa-eglot (part of Emacs 29 and newer)"
	case Pathogen:
		return "apt-get install vim-pathogen"
	case Treemacs, Neotree:
		return "apt-get install elpa-" + string(p)
	}
	return "nobody knows how"
}

// Need returns the absolute path of p's program. If it is missing, the test is skipped, or fails when RequireEnv is
// "1". Gemini, Qwen, Conformance and Inspector are JavaScript: start them with Command.
func Need(t testing.TB, p Peer) string {
	t.Helper()
	found, err := find(p)
	if err == nil {
		return found.Path
	}
	message := fmt.Sprintf("%s: %v; get it with: %s", p, err, p.Install())
	if Required() {
		t.Fatalf("%s (%s=1 forbids leaving the test out)", message, RequireEnv)
	}
	t.Skip(message)
	return ""
}

// Command returns the argument list that starts p with args, with the right Node before a JavaScript program. Missing
// programs are handled as in Need.
func Command(t testing.TB, p Peer, args ...string) []string {
	t.Helper()
	path := Need(t, p)
	if p == Gemini || p == Qwen || p == Conformance || p == Inspector {
		return append([]string{Need(t, Node), path}, args...)
	}
	return append([]string{path}, args...)
}

// Required reports whether missing peers are failures in this run.
func Required() bool { return os.Getenv(RequireEnv) == "1" }

// A Finding is one line of Report.
type Finding struct {
	Peer Peer
	// Path is absolute; "" if the program was not found.
	Path string
	// Version is as the program or its package reports it; "" if not found.
	Version string
	// Err says why it was not found, or is nil.
	Err error
}

// Report looks for every peer.
func Report() []Finding {
	var all []Finding
	for _, p := range All() {
		f, err := find(p)
		f.Err = err
		all = append(all, f)
	}
	return all
}

// find looks for one peer. Its error says what is missing, not how to install it.
func find(p Peer) (Finding, error) {
	root, err := Root()
	if err != nil {
		return Finding{Peer: p}, err
	}
	var f Finding
	switch p {
	case Gemini:
		f, err = findPackage(root, "@google/gemini-cli", "bundle/gemini.js", "gemini")
	case Qwen:
		f, err = findPackage(root, "@qwen-code/qwen-code", "cli-entry.js", "qwen")
	case Claude:
		f, err = findClaude(root)
	case Copilot:
		f, err = findNative(root, "@github/copilot-*/copilot")
	case OpenCode:
		f, err = findNative(root, "opencode-*/bin/opencode")
	case Codex:
		f, err = findNative(root, "@openai/codex-*/vendor/*/bin/codex")
	case Conformance:
		f, err = findPackage(root, "@modelcontextprotocol/conformance", "dist/index.js", "")
	case Inspector:
		f, err = findPackage(root, "@modelcontextprotocol/inspector-cli", "build/index.js", "")
	case Node:
		f, err = findNode(root)
	case Esbuild:
		f, err = findEsbuild(root)
	case Chromium:
		f, err = findProgram("--version", chromiumNames(), chromiumPlaces())
	case Bubblewrap:
		f, err = findProgram("--version", []string{"bwrap"}, nil)
	case Tmux:
		f, err = findProgram("-V", []string{"tmux"}, nil)
	case Screen:
		f, err = findProgram("-v", []string{"screen"}, nil)
	case Neovim:
		f, err = findProgram("--version", []string{"nvim"}, nil)
	case Vim:
		f, err = findProgram("--version", []string{"vim.basic", "vim.nox", "vim"}, nil)
	case Emacs:
		f, err = findProgram("--version", []string{"emacs"}, nil)
	case Micro:
		f, err = findProgram("--version", []string{"micro"}, nil)
	case Kakoune:
		f, err = findKakoune()
	case Eglot:
		f, err = findEglot()
	case Pathogen:
		f, err = findPathogen()
	case Treemacs, Neotree:
		f, err = findLibrary(string(p))
	default:
		err = fmt.Errorf("no such peer %q", string(p))
	}
	f.Peer = p
	return f, err
}

// Root returns the absolute path of the repository that contains the working folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/pollux-companion/pollux\n") {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("the working folder is not inside pollux's repository")
		}
		dir = filepath.Dir(dir)
	}
}

// lookPath returns the first of names in PATH, or the first of places that exists.
func lookPath(names, places []string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	for _, place := range places {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place, nil
		}
	}
	return "", fmt.Errorf("no %s in PATH", strings.Join(names, ", "))
}
