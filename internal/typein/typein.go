// Package typein types a text into another process's terminal, but never Enter. It uses the program that shows the
// terminal (tmux, GNU screen, zellij, kitty, WezTerm).
package typein

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/words"
)

// maxText bounds one text, in bytes: a mention and a prompt of a few paragraphs.
const maxText = 16 << 10

// within bounds the run of each program.
const within = 3 * time.Second

var (
	// ErrNoTerminal: the process has no terminal that can be typed into. The error's text says why.
	ErrNoTerminal = errors.New("nothing can be typed there")
	// errBehind: the process is not reading its terminal now.
	errBehind = errors.New("it is suspended, or another program runs in front of it in its terminal; bring it to the foreground")
	// errText: the text is not one line of visible characters.
	errText = errors.New("only one line of visible text can be typed")
)

// A Place is a terminal that can be typed into.
type Place struct {
	// Leader is the process that the terminal was opened for, usually a shell.
	Leader proc.Info
	// Host is the process that shows the terminal: a multiplexer, a terminal emulator, an editor.
	Host proc.Info

	pid int
}

// Find returns the terminal that a process is reading now, or else ErrNoTerminal or errBehind.
func Find(pid int) (Place, error) {
	t, ok := proc.Terminal(pid)
	if !ok {
		return Place{}, fmt.Errorf("%w: the system knows no terminal of process %d", ErrNoTerminal, pid)
	}
	if !t.Foreground {
		return Place{}, errBehind
	}
	number, _ := proc.Leader(pid)
	leader, ok := proc.Lookup(number)
	if its, known := proc.Terminal(number); !ok || !known || its.ID != t.ID {
		return Place{}, fmt.Errorf("%w: the program that opened its terminal has ended", ErrNoTerminal)
	}
	host, ok := proc.Lookup(leader.Parent)
	if !ok || host.PID <= 1 {
		return Place{}, fmt.Errorf("%w: the program that shows its terminal is not known", ErrNoTerminal)
	}
	return Place{Leader: leader, Host: host, pid: pid}, nil
}

// Check reports whether a text may be typed: one line without terminal control characters (else errText).
func Check(text string) error {
	if text == "" || len(text) > maxText || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || words.Hidden(r) }) {
		return fmt.Errorf("%w, of at most %d bytes", errText, maxText)
	}
	return nil
}

// Type types a text, as a paste if the terminal supports that. by is the program that did it. ErrNoTerminal: no known
// program shows this terminal.
func (p Place) Type(ctx context.Context, text string) (by string, err error) {
	if err := Check(text); err != nil {
		return "", err
	}
	for _, w := range ways() {
		if !strings.HasPrefix(strings.ToLower(p.Host.Name), w.host) {
			continue
		}
		env, err := proc.Environ(p.Leader.PID) // the leader's environment: a child may have changed its own
		if err != nil {
			return "", fmt.Errorf("%w: the environment of its terminal cannot be read: %w", ErrNoTerminal, err)
		}
		s := &session{place: p, text: text, env: variables(env)}
		if now, ok := proc.Terminal(p.pid); !ok || !now.Foreground {
			return "", errBehind
		}
		if err := w.run(s, ctx); err != nil {
			return "", fmt.Errorf("%s did not type it: %w", w.name, err)
		}
		return w.name, nil
	}
	return "", fmt.Errorf("%w: its terminal is shown by %q, which pollux has no way to type into; tmux, screen, zellij, kitty and WezTerm have one", ErrNoTerminal, p.Host.Name)
}

func variables(env []string) map[string]string {
	all := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return all
}

// A way is how to type through one program; host begins the name of the process that shows its terminals.
type way struct {
	name, host string
	run        func(*session, context.Context) error
}

func ways() []way {
	return []way{
		{"tmux", "tmux", (*session).tmux}, {"screen", "screen", (*session).screen}, {"zellij", "zellij", (*session).zellij},
		{"kitty", "kitty", (*session).kitty}, {"WezTerm", "wezterm", (*session).wezterm},
	}
}

// A session is the typing of one text.
type session struct {
	place Place
	text  string
	env   map[string]string // of the terminal's first process
}

var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^%?[0-9]{1,9}$`) })

// id returns the value of a variable that holds a number.
func (s *session) id(name string) (string, error) {
	if v := s.env[name]; number().MatchString(v) {
		return v, nil
	}
	return "", fmt.Errorf("%s is not set where it runs", name)
}

// tmux pastes from its own buffer, bracketed if the program in the pane has asked for that.
func (s *session) tmux(ctx context.Context) error {
	pane, err := s.id("TMUX_PANE")
	if err != nil {
		return err
	}
	socket, _, _ := strings.Cut(s.env["TMUX"], ",")
	if !filepath.IsAbs(socket) {
		return errors.New("TMUX names no socket")
	}
	out, err := s.start(ctx, "", "tmux", "-S", socket, "display-message", "-p", "-t", pane, "#{pane_pid}")
	if err == nil && strings.TrimSpace(out) != strconv.Itoa(s.place.Leader.PID) {
		err = fmt.Errorf("the pane %s is another terminal by now", pane)
	}
	buffer := "pollux-" + strconv.Itoa(os.Getpid())
	if err == nil {
		_, err = s.start(ctx, s.text, "tmux", "-S", socket, "load-buffer", "-b", buffer, "-")
	}
	if err == nil {
		_, err = s.start(ctx, "", "tmux", "-S", socket, "paste-buffer", "-p", "-d", "-b", buffer, "-t", pane)
	}
	return err
}

// stuffed is how many bytes screen takes at once: more than 767 it drops, and says nothing.
const stuffed = 512

// screen stuffs the text as typed input, in pieces. It escapes backslash, caret and dollar, which have a special meaning there.
func (s *session) screen(ctx context.Context) error {
	window, err := s.id("WINDOW")
	if err != nil {
		return err
	}
	if s.env["STY"] == "" {
		return errors.New("STY is not set where it runs")
	}
	special := strings.NewReplacer(`\`, `\\`, `^`, `\^`, `$`, `\044`)
	piece := ""
	for i, r := range s.text {
		piece += special.Replace(string(r))
		if len(piece) < stuffed && i+utf8.RuneLen(r) < len(s.text) {
			continue
		}
		if _, err := s.start(ctx, "", "screen", "-S", s.env["STY"], "-p", window, "-X", "stuff", piece); err != nil {
			return err
		}
		piece = ""
	}
	return nil
}

func (s *session) zellij(ctx context.Context) error {
	pane, err := s.id("ZELLIJ_PANE_ID")
	if err != nil {
		return err
	}
	if s.env["ZELLIJ_SESSION_NAME"] == "" {
		return errors.New("ZELLIJ_SESSION_NAME is not set where it runs")
	}
	_, err = s.start(ctx, "", "zellij", "--session", s.env["ZELLIJ_SESSION_NAME"], "action", "write-chars", "--pane-id", "terminal_"+pane, "--", s.text)
	return err
}

func (s *session) kitty(ctx context.Context) error {
	window, err := s.id("KITTY_WINDOW_ID")
	if err != nil {
		return err
	}
	if s.env["KITTY_LISTEN_ON"] == "" {
		return errors.New("kitty listens nowhere; set allow_remote_control and listen_on in kitty.conf")
	}
	_, err = s.start(ctx, s.text, "kitty", "@", "--to", s.env["KITTY_LISTEN_ON"], "send-text", "--match", "id:"+window, "--bracketed-paste", "auto", "--stdin")
	return err
}

func (s *session) wezterm(ctx context.Context) error {
	pane, err := s.id("WEZTERM_PANE")
	if err != nil {
		return err
	}
	_, err = s.start(ctx, s.text, "wezterm", "cli", "--no-auto-start", "send-text", "--pane-id", pane)
	return err
}

// start runs a program with this process's environment and the terminal's WEZTERM_UNIX_SOCKET, and returns its
// output.
func (s *session) start(ctx context.Context, input, program string, args ...string) (string, error) {
	path, err := paths.Program(program)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = within
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = os.Environ()
	if socket := s.env["WEZTERM_UNIX_SOCKET"]; socket != "" {
		cmd.Env = append(cmd.Env, "WEZTERM_UNIX_SOCKET="+socket)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(errs.String() + out.String()); said != "" {
			return "", errors.New(words.Printable(words.Shorten(said, 300)))
		}
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return out.String(), nil
}
