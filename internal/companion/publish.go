package companion

import (
	"errors"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/control"
)

// publish writes the discovery file to where CLIs look for it. When something of another user's is in the way, as anybody can
// put it into a shared temporary folder, the file goes into a private folder instead. TMPDIR leads CLIs there in
// terminals that pollux equips. Each call tries the first place again. publish fails only for a file that cannot be encoded.
// The caller holds c.mu.
func (c *Companion) publish(f *discovery.File) error {
	if _, err := f.Encode(); err != nil {
		return err
	}
	if c.aloof {
		errs := []error{c.place.Remove()}
		for _, p := range c.places {
			errs = append(errs, p.Remove())
		}
		return errors.Join(errs...)
	}
	c.announce(f)
	before := c.hidden
	c.hidden = c.place.Put(f)
	switch {
	case c.hidden != nil && before == nil:
		c.o.Log.Warn("a CLI finds this companion by environment only", "err", c.hidden)
	case c.hidden == nil && before != nil:
		c.o.Log.Info("the discovery file has found its place", "file", c.place.Path())
	}
	if c.hidden != nil && c.aside == nil {
		c.aside = discovery.NewPlace(discovery.DirIn(c.privateTemp()), c.o.PID, c.file.Port)
	}
	if c.aside != nil { // terminals that were sent to this folder stay there
		if err := c.aside.Put(f); err != nil {
			c.o.Log.Warn("no private discovery file", "err", err)
			c.aside = nil
		}
	}
	return nil
}

// announce writes the files by which the other agents' CLIs find this companion, but only for agents that were used on this machine.
// A file that cannot be written is logged. The caller holds c.mu.
func (c *Companion) announce(f *discovery.File) {
	c.answerAskers()
	soon, _ := agent.Find(c.o.Soon)
	for _, a := range agent.All() {
		if a.Locks == nil || a.With != "" || c.socket == "" && a.Private() {
			continue
		}
		if !c.serves(a) {
			if p := c.places[a.Name]; p != nil {
				if err := p.Remove(); err != nil {
					c.o.Log.Warn("an agent still finds this companion", "agent", a.Label, "err", err)
				}
				delete(c.places, a.Name)
			}
			continue
		}
		if c.places[a.Name] == nil {
			if p := a.Place(f.Port, a.Name == c.o.Soon || soon.With == a.Name); p != nil {
				c.places[a.Name] = p
			}
		}
		if p := c.places[a.Name]; p != nil {
			e := agent.Endpoint{
				Port: f.Port, Socket: c.socket, Since: c.started, Token: c.record.DoorOf(a.Name).Token, Roots: f.Roots, PID: c.o.PID,
				IDE: c.o.IDE.Name, DisplayName: c.o.IDE.DisplayName,
			}
			if err := p.Put(e); err != nil {
				c.o.Log.Warn("an agent does not find this companion by itself", "agent", a.Label, "err", err)
			}
		}
	}
}

// privateTemp is the temporary folder for terminals while the usual one is blocked.
func (c *Companion) privateTemp() string { return filepath.Join(c.o.Dirs.State, "tmp") }

// folderTrouble says why CLIs cannot find this companion by themselves; nil when they can.
func (c *Companion) folderTrouble() *control.Trouble {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden == nil {
		return nil
	}
	return &control.Trouble{
		ID:   "folder",
		What: "there is no discovery file: " + c.hidden.Error(),
		Why:  "a Gemini CLI finds this companion only by environment: in pollux run, in the editor's terminals, or after eval \"$(pollux env)\"",
		Do:   "once the obstacle is gone, the file appears within a minute; or set TMPDIR to a folder of your own, here and where gemini runs",
	}
}
