//go:build !race

package web_test

// raced says that the race detector is on: megabytes take half a minute then.
const raced = false
