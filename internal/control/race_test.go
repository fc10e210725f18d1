//go:build race

package control

// raced says that the race detector is on: megabytes take half a minute then.
const raced = true
