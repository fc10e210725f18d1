//go:build !race

package gemini

// raced says that the race detector is on: figures mean nothing then.
const raced = false
