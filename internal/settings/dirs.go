package settings

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

// Dirs are the folders of SPEC §11.3, absolute. Asking for them creates none.
type Dirs struct {
	Config string // the user's configuration; machines may share it
	State  string // resume records, consent, audit, history, log; private, and only for this machine
	// Run lists the folders that may hold the sockets of running companions, or Pointers to them, preferred first. A companion uses the
	// first that works; a client looks in all.
	Run []string
}

// Folders returns the folders for this user and environment.
func Folders() (Dirs, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return Dirs{}, errors.New("no folder for the configuration: HOME is not set (nor XDG_CONFIG_HOME); set it and try again")
	}
	state, err := stateHome()
	if err != nil {
		return Dirs{}, err
	}
	state = filepath.Join(state, "pollux")
	return Dirs{
		Config: filepath.Join(config, "pollux"),
		State:  state,
		Run:    append(runDirs(state), usual(state)...),
	}, nil
}

// Pointers is the folder in which companions say where their sockets are.
func (d Dirs) Pointers() string { return pointers(d.State) }

func pointers(state string) string { return filepath.Join(state, "run") }

// usual returns where companions that had no variable for the state folder, or this one's HOME, point to their sockets.
func usual(state string) (dirs []string) {
	for _, home := range homes() {
		dir := filepath.Join(home, usualState, "pollux")
		if _, err := os.Stat(pointers(dir)); err == nil && dir != state {
			dirs = append(dirs, pointers(dir))
		}
	}
	return dirs
}

// ConfigFile returns the path of the user's configuration file.
func (d Dirs) ConfigFile() string { return filepath.Join(d.Config, "config.json") }

// LogFile returns the path of the current log.
func (d Dirs) LogFile() string { return filepath.Join(d.State, "pollux.log") }

// home joins elem to the user's home folder.
func home(elem ...string) (string, error) {
	h, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(h) {
		return "", errors.New("no folder for the state: HOME is not set to an absolute path; set it and try again")
	}
	return filepath.Join(append([]string{h}, elem...)...), nil
}

// absEnv returns the value of a variable that holds an absolute path. Other values do not count, as XDG requires.
func absEnv(name string) (string, bool) {
	v := os.Getenv(name)
	return v, filepath.IsAbs(v)
}

// homes returns this user's home folders: HOME, and the one of the user database.
func homes() (dirs []string) {
	if h, err := home(); err == nil {
		dirs = append(dirs, h)
	}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && filepath.IsAbs(u.HomeDir) && !slices.Contains(dirs, u.HomeDir) {
		dirs = append(dirs, u.HomeDir)
	}
	return dirs
}
