//go:build race

package pace

// Raced says that the race detector is on: figures mean nothing then, and megabytes take half a minute.
const Raced = true
