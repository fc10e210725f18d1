//go:build race

package pace

// Raced reports that the race detector is on. Then timings mean nothing, and megabytes take half a minute.
const Raced = true
