//go:build !race

package runner

// raced says that the race detector is on.
const raced = false
