package settingsfile

import (
	"errors"
	"path/filepath"
)

// Home returns the folder that an agent keeps its files in, absolute: the one that its variable names, or else the named folder in the
// user's home. getenv reads the agent's environment. The folder need not exist.
func Home(getenv func(string) string, variable, name string) (string, error) {
	if dir := getenv(variable); dir != "" {
		return filepath.Abs(dir)
	}
	home := getenv(HomeVariable)
	if home == "" {
		return "", errors.New("there is no home folder: " + HomeVariable + " is not set (nor " + variable + "); set it and try again")
	}
	home, err := filepath.Abs(home)
	return filepath.Join(home, name), err
}
