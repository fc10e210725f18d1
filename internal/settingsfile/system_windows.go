package settingsfile

import "os"

// HomeVariable names the variable of the user's home folder.
const HomeVariable = "USERPROFILE"

// RootsOwn says whether file exists. Its access list is left to the program that reads it.
func RootsOwn(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
