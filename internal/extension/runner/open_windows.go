package runner

// openFlags: Windows has no pipes in folders.
const openFlags = 0
