package doctor

import (
	"os"
	"path/filepath"
)

// commonTemps are the temp folders of the user and of the system.
func commonTemps() []string {
	temps := []string{filepath.Join(os.Getenv("SystemRoot"), "temp")}
	if v := os.Getenv("LOCALAPPDATA"); v != "" {
		temps = append(temps, filepath.Join(v, "Temp"))
	}
	return temps
}

// tempNames are the variables that name the temp folder, in their order.
func tempNames() []string { return []string{"TEMP", "TMP"} }
