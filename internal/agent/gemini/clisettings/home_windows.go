package clisettings

import "os"

// homeVariable names the home folder.
const homeVariable = "USERPROFILE"

// systemSettings is the file of this machine's.
const systemSettings = `C:\ProgramData\gemini-cli\settings.json`

// rootsOwn says that there is such a file; its access list is left to the CLI.
func rootsOwn(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
