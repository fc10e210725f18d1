package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/qwen"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// An Installed is the relay's discovery file, as it is or would be.
type Installed struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"` // something was done
}

// Install writes the discovery file with which every CLI of this user that
// finds no editor of its own starts program as its relay (SPEC K-4). program is
// absolute and stays where it is. With dryRun nothing is written.
func Install(program string, dryRun bool) (Installed, error) {
	if !filepath.IsAbs(program) {
		return Installed{}, fmt.Errorf("the program %q of the relay is not an absolute path", program)
	}
	in := Installed{Path: filepath.Join(discovery.Dir(), discovery.RelayFile)}
	temp := discovery.TempDir()
	file := discovery.File{
		Roots: []string{everything(temp)},
		IDE:   &discovery.IDE{Name: "pollux", DisplayName: "Pollux"},
		Stdio: &discovery.Stdio{Command: program, Args: []string{"relay", "--tmp", temp}},
	}
	want, err := file.Encode()
	if err != nil {
		return in, err
	}
	have, err := safefile.ReadPrivate(in.Path, 1<<20)
	if err == nil && string(have) == string(want) {
		return in, nil
	}
	in.Changed = true
	if dryRun {
		return in, nil
	}
	return in, discovery.NewPlace(discovery.Dir(), 1, 0).Put(&file)
}

// Remove removes the relay's discovery file, unless it is not a relay's. With dryRun nothing is removed.
func Remove(dryRun bool) (Installed, error) {
	in := Installed{Path: filepath.Join(discovery.Dir(), discovery.RelayFile)}
	data, err := safefile.ReadPrivate(in.Path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return in, nil
	}
	if err != nil {
		return in, err
	}
	if f, err := discovery.Parse(data); err != nil || f.Stdio == nil {
		return in, fmt.Errorf("%s is not a relay's file; look at it and remove it by hand", in.Path)
	}
	in.Changed = true
	if dryRun {
		return in, nil
	}
	return in, os.Remove(in.Path)
}

// everything is the folder that holds all others.
func everything(temp string) string {
	return filepath.VolumeName(temp) + string(filepath.Separator)
}

// InstallQwen writes the lock with which every Qwen Code of this user that finds no editor of its own starts program as
// its relay (SPEC Q-8). program is absolute and stays where it is. A lock of another program is left alone, which is an
// error. With dryRun nothing is written.
func InstallQwen(program string, dryRun bool) (Installed, error) {
	if !filepath.IsAbs(program) {
		return Installed{}, fmt.Errorf("the program %q of the relay is not an absolute path", program)
	}
	home, err := qwen.Home(os.Getenv)
	if err != nil {
		return Installed{}, err
	}
	lock := &qwen.Lock{
		Roots: []string{everything(home)}, Name: "pollux", DisplayName: "Pollux",
		Stdio: &qwen.Stdio{Command: program, Args: []string{"relay", "--qwen-home", home}}, // Qwen Code does not pass QWEN_HOME on
	}
	changed, path, err := qwen.PutRelay(home, lock, dryRun)
	return Installed{path, changed}, err
}

// RemoveQwen removes the lock that InstallQwen wrote. Another program's lock stays. With dryRun nothing is removed.
func RemoveQwen(dryRun bool) (Installed, error) {
	home, err := qwen.Home(os.Getenv)
	if err != nil {
		return Installed{}, err
	}
	changed, path, err := qwen.RemoveRelay(home, dryRun)
	return Installed{path, changed}, err
}

// QwenWays are the ways to the companions that a Qwen Code in w would join, in its order; home is the folder of its files.
// Unlike Qwen Code, the relay goes on to the next one where a companion has gone.
func QwenWays(home string, w *client.World) func() []client.Way {
	w = client.Complete(w)
	return func() (ways []client.Way) {
		for _, c := range qwen.Choose(qwen.World{Home: home, Dir: w.Dir, Getenv: w.Getenv, Alive: w.Alive}).Candidates {
			if c.Lock != nil && c.Lock.Port != 0 && c.Fits && !c.Dead {
				ways = append(ways, client.Way{Host: "127.0.0.1", Port: c.Lock.Port, Token: c.Lock.Token, From: c.Name})
			}
		}
		return ways
	}
}
