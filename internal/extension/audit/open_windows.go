package audit

import "os"

// openLog opens a file of the log.
func openLog(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }
