package workspace

// foldCase says that names differing in case alone name one file here.
const foldCase = false

func samePath(a, b string) bool { return a == b }

// maxWatches is how many folders are watched; what is beyond is polled.
// Inotify allows some thousands of watches to all programs of a user.
const maxWatches = 1024
