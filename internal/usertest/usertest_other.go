//go:build !linux

// Package usertest lets a test act as another user of the machine, for what must hold against them.
package usertest

import "testing"

// ID is the other user's number.
const ID = 65534

// Do says that it cannot be tried here, and returns false.
func Do(t testing.TB, _ func()) bool {
	t.Helper()
	t.Log("threads of this system have no users of their own: nothing is tried as another user")
	return false
}
