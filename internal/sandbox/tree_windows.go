package sandbox

// A tree is nothing on Windows, where no plan is made.
type tree string
