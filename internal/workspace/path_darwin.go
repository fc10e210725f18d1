package workspace

import "strings"

// foldCase says that names differing in case alone name one file here.
const foldCase = true

func samePath(a, b string) bool { return strings.EqualFold(a, b) }

// maxWatches is how many folders are watched; what is beyond is polled.
// Kqueue keeps a descriptor open for every file of a watched folder.
const maxWatches = 64
