package settingsfile

import "os"

// HomeVariable is the environment variable of the user's home folder.
const HomeVariable = "USERPROFILE"

// RootsOwn reports whether file exists. The program that reads the file relies on its access list.
func RootsOwn(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
