package sandbox

// A tree is unused on Windows, where no plan is made.
type tree string
