package companion

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// Whether an agent is told what the user looks at (SPEC C-8), from the strictest.
const (
	shareLeave  = "leave" // it does not even find this companion, so that it finds another
	shareNever  = "never"
	shareAsk    = "ask"
	shareAlways = "always"
)

var strictness = []string{shareLeave, shareNever, shareAsk, shareAlways}

// What control.Session.Told says.
const (
	toldAll     = "told"
	toldPaused  = "paused"
	toldAsks    = "asks"
	toldNothing = "never"
)

// everyAgent stands in the settings for the agents that they do not name.
const everyAgent = "*"

// sharesFolder holds one file for each folder for which the user has decided.
const sharesFolder = "share"

// maxShares bounds such a file, in bytes.
const maxShares = 64 << 10

// askShareWithin is how long the question stands.
const askShareWithin = 10 * time.Minute

// shares knows which agents are told what the user looks at. A decision for a folder holds for the folders below it. It comes before the settings.
// Of several roots the strictest counts. Its methods may be called from any goroutine.
type shares struct {
	dir      string
	defaults map[string]string
	agents   []control.Share // every agent, in the table's order; without modes

	writing sync.Mutex // held from reading a file to its change

	mu     sync.Mutex        // guards the below
	modes  map[string]string // by the agents' names
	forced map[string]bool   // never, although that could not be written down
	asked  map[string]bool   // the question was shown in this life, and not answered
	asking string            // the agent that a question is about; "" for none
	answer context.CancelFunc
}

// A shareFile is what the user has decided for a folder.
type shareFile struct {
	Folder string            `json:"folder"`
	Agents map[string]string `json:"agents"`
}

func newShares(state string, defaults map[string]string) (*shares, error) {
	s := &shares{dir: filepath.Join(state, sharesFolder), defaults: defaults, modes: map[string]string{}, forced: map[string]bool{}, asked: map[string]bool{}}
	names := agent.Names(nil)
	for name := range defaults {
		if name != everyAgent && !slices.Contains(names, name) {
			return nil, fmt.Errorf("the setting share names %q, which is no agent; the agents are %s", name, strings.Join(names, ", "))
		}
	}
	for _, a := range agent.All() {
		s.agents = append(s.agents, control.Share{Agent: a.Name, Label: a.Label})
	}
	return s, nil
}

func (s *shares) file(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:8])+".json")
}

// load reads the file of a folder. A missing file is no error.
func (s *shares) load(folder string) (f shareFile, err error) {
	path := s.file(folder)
	data, err := safefile.ReadPrivate(path, maxShares)
	if errors.Is(err, fs.ErrNotExist) {
		return shareFile{Folder: folder, Agents: map[string]string{}}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Folder != folder {
		err = errors.New("it is about another folder")
	}
	if err != nil {
		return f, fmt.Errorf("%q says with whom you share what you look at, and cannot be used (%w); remove it and decide again with pollux share", path, err)
	}
	if f.Agents == nil {
		f.Agents = map[string]string{}
	}
	return f, nil
}

// recorded returns the decision for the nearest of a folder and the folders above it; "" for none, never when a file cannot be used.
func (s *shares) recorded(root, name string) string {
	for folder := root; ; folder = filepath.Dir(folder) {
		f, err := s.load(folder)
		if err != nil {
			return shareNever
		}
		if mode := f.Agents[name]; mode != "" {
			if !slices.Contains(strictness, mode) {
				return shareNever
			}
			return mode
		}
		if filepath.Dir(folder) == folder {
			return ""
		}
	}
}

// look finds out the modes for these roots.
func (s *shares) look(roots []string) {
	modes := map[string]string{}
	for _, a := range s.agents {
		preset := cmp.Or(s.defaults[a.Agent], s.defaults[everyAgent], shareAlways)
		mode := preset
		for i, root := range roots {
			of := cmp.Or(s.recorded(root, a.Agent), preset)
			if i == 0 || slices.Index(strictness, of) < slices.Index(strictness, mode) {
				mode = of
			}
		}
		modes[a.Agent] = mode
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.forced {
		modes[name] = shareNever
	}
	s.modes = modes
	if s.asking != "" && modes[s.asking] != shareAsk {
		s.answer()
	}
}

// set decides for every root. What cannot be written down counts for this life alone if it is never, and not at all otherwise.
func (s *shares) set(roots []string, name, mode string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	var errs []error
	for _, root := range roots {
		f, err := s.load(root)
		if err == nil {
			f.Agents[name] = mode
			err = s.write(f)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.forced, name)
	if err != nil || len(roots) == 0 {
		s.forced[name] = true
	}
	return err
}

func (s *shares) write(f shareFile) error {
	data, err := json.Marshal(f)
	if err == nil {
		err = safefile.PrivateDir(s.dir)
	}
	if err == nil {
		err = safefile.Write(s.file(f.Folder), data, &safefile.Options{Mode: 0o600})
	}
	return err
}

// mode returns an agent's mode; never for an unknown agent.
func (s *shares) mode(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.modes[name], shareNever)
}

// list returns every agent with its mode.
func (s *shares) list() []control.Share {
	list := slices.Clone(s.agents)
	for i := range list {
		list[i].Mode = s.mode(list[i].Agent)
	}
	return list
}

// withheld returns the agents that are told nothing.
func (s *shares) withheld() (names []string) {
	for _, a := range s.list() {
		if a.Mode != shareAlways {
			names = append(names, a.Agent)
		}
	}
	return names
}

// begin marks a question about an agent as asked; ok is false when it was asked before, or another question stands.
func (s *shares) begin(name string, answer context.CancelFunc) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking != "" || s.asked[name] || s.modes[name] != shareAsk {
		return false
	}
	s.asking, s.answer = name, answer
	return true
}

// end notes that the question is over; again allows it to be asked anew.
func (s *shares) end(again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[s.asking] = !again
	s.asking = ""
}

// startShares withholds what agents must not be told, before any of them can connect.
func (c *Companion) startShares() (err error) {
	if c.shares, err = newShares(c.o.Dirs.State, c.o.Settings.Share); err != nil {
		return err
	}
	c.wakeShares = make(chan struct{}, 1)
	c.shares.look(c.work.Roots())
	c.store.Withhold(c.shares.withheld())
	return nil
}

// lookShares takes over what another companion or the user has decided meanwhile. It returns at once.
func (c *Companion) lookShares() {
	before := c.shares.list()
	c.shares.look(c.work.Roots())
	c.store.Withhold(c.shares.withheld())
	if !slices.Equal(before, c.shares.list()) {
		go c.tellShares()
	}
}

// tellShares tells the views that other agents are told now.
func (c *Companion) tellShares() {
	if c.o.Editor != nil {
		c.o.Editor.SessionsChanged()
	}
	if page := c.webPage(); page != nil {
		page.SessionsChanged()
	}
	c.reviewers.touch(func() {})
}

// SetShare is part of control.Backend.
func (b backend) SetShare(name, mode string) error {
	names := agent.Names(nil)
	switch {
	case !slices.Contains(names, name):
		return fmt.Errorf("%q is no agent; the agents are %s", name, strings.Join(names, ", "))
	case !slices.Contains(strictness, mode):
		return fmt.Errorf("%q is not always, ask, never or leave", mode)
	case mode == shareLeave && name == agent.Gemini:
		return errors.New("nothing stands in the way of Gemini CLI, which takes one of several companions by itself; say never instead")
	}
	c := b.c
	err := c.shares.set(c.work.Roots(), name, mode)
	c.lookShares()
	c.askShares()
	c.electAndPublish()
	go c.tellTroubles()
	if err != nil && mode == shareNever {
		return fmt.Errorf("%s is told nothing until this companion ends, but that could not be written down: %w", name, err)
	}
	return err
}

// followShares asks the person about the agents that connect, until Stop.
func (c *Companion) followShares() {
	unwatch := c.agents.Watch(c.askShares)
	c.onStop("sharing", func(context.Context) error { unwatch(); return nil })
	c.tasks.Go(func() {
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-c.wakeShares:
			}
			c.lookFolders()
			c.lookShares()
			for _, s := range c.everySession() {
				if !strings.HasPrefix(s.Client, "pollux") { // pollux doctor and context look for themselves
					c.askShare(s.Agent, s.Label)
				}
			}
		}
	})
}

// askShares looks soon whether somebody is to be asked.
func (c *Companion) askShares() {
	select {
	case c.wakeShares <- struct{}{}:
	default:
	}
}

// askShare asks the person once whether an agent may be told what they look at, where the mode is ask. The question is asked again
// when nobody saw it.
func (c *Companion) askShare(name, label string) {
	ctx, cancel := context.WithTimeout(c.ctx, askShareWithin)
	defer cancel()
	if c.below || !c.shares.begin(name, cancel) {
		return
	}
	const yes, no = "Share", "Never share"
	choice, err := c.ask(ctx, web.Question{
		Title:   "May " + label + " know what you look at?",
		Message: "Its model would hear of your open files, cursor, selection and problems in " + strings.Join(c.work.Roots(), ", ") + ". pollux share changes the answer later.",
		Choices: []string{yes, no},
	})
	c.shares.end(err != nil && ctx.Err() == nil)
	mode := map[string]string{yes: shareAlways, no: shareNever}[choice]
	if err != nil || mode == "" || c.shares.mode(name) != shareAsk {
		return
	}
	if err := (backend{c}).SetShare(name, mode); err != nil {
		c.o.Log.Warn("the answer is not kept", "agent", name, "err", err)
	}
}

// toldTo says whether an agent is told what the user looks at, as control.Session says it.
func (c *Companion) toldTo(name string) string {
	switch mode := c.shares.mode(name); {
	case mode == shareNever, mode == shareLeave:
		return toldNothing
	case c.store.Paused():
		return toldPaused
	case mode == shareAsk:
		return toldAsks
	}
	return toldAll
}

// A Sharing says in words who is told what the user looks at.
type Sharing struct {
	// Agents counts the connected sessions, agent by agent: "Gemini 2, Claude 1". Untold are the agents among them that are told
	// nothing: "Claude".
	Agents, Untold string
	// Sentence says it all; "" when nobody is connected.
	Sentence string
}

// Sharing says who is told what the user looks at, at this moment.
func (c *Companion) Sharing() Sharing {
	why := map[string]string{toldPaused: "sharing is paused", toldAsks: "until you agree: pollux share", toldNothing: "as you decided: pollux share"}
	var with, without, untold, order []string
	count := map[string]int{}
	for _, s := range c.everySession() {
		name := strings.ToUpper(s.Agent[:1]) + s.Agent[1:]
		if count[name]++; count[name] == 1 {
			order = append(order, name)
		}
		switch told := c.toldTo(s.Agent); told {
		case toldAll:
			with = append(with, s.Label)
			continue
		case toldPaused: // every view says so by itself
		default:
			untold = append(untold, name)
		}
		without = append(without, s.Label+" ("+why[c.toldTo(s.Agent)]+")")
	}
	var out Sharing
	for i, name := range order {
		order[i] = fmt.Sprintf("%s %d", name, count[name])
	}
	out.Agents, out.Untold = strings.Join(order, ", "), strings.Join(slices.Compact(slices.Sorted(slices.Values(untold))), ", ")
	var parts []string
	if len(with) > 0 {
		parts = append(parts, strings.Join(with, ", ")+": told your open files, cursor, selection and problems")
	}
	if len(without) > 0 {
		parts = append(parts, strings.Join(without, ", ")+": told nothing")
	}
	out.Sentence = strings.Join(parts, "; ")
	return out
}
