//go:build race

package lsp_test

// raced says that the race detector is on: megabytes take half a minute then.
const raced = true
