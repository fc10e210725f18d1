package companion

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// pausedFolder holds one file for each set of roots that is paused. A pause outlives the companion, so that no restart shares what the user wants kept private.
const pausedFolder = "paused"

func (c *Companion) pauseFile() string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(c.work.Roots())), "\x00")))
	return filepath.Join(c.o.Dirs.State, pausedFolder, hex.EncodeToString(sum[:8]))
}

// startPause takes over the pause of an earlier companion. When it cannot tell, it pauses.
func (c *Companion) startPause() {
	if _, err := os.Lstat(c.pauseFile()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		c.store.Pause(true)
	}
	c.store.FollowPause(c.paused) // until Shut
}

// paused writes the start or end of a pause down for the next companion, and tells the views and reviewers.
func (c *Companion) paused(now bool) {
	file := c.pauseFile()
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if now {
		if err = safefile.PrivateDir(filepath.Dir(file)); err == nil {
			err = safefile.Write(file, nil, &safefile.Options{Mode: 0o600})
		}
	}
	if err != nil {
		c.o.Log.Warn("the next companion will not know whether sharing is paused", "err", err)
	}
	go c.tellTroubles()
}

// pauseTrouble says that agents are told nothing; nil when no pause holds.
func (c *Companion) pauseTrouble() *control.Trouble {
	if !c.store.Paused() {
		return nil
	}
	return &control.Trouble{
		ID: pausedTrouble, What: "sharing is paused: agents are not told what you look at",
		Why: "models know of no open file, cursor, selection or problem; proposals come as ever",
		Do:  "pollux resume, or the editor's own command",
	}
}

// pausedTrouble is the ID of pauseTrouble.
const pausedTrouble = "paused"
