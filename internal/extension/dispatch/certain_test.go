package dispatch

import (
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// A mistake about one extension is no answer about it, and no end of anything.
func TestCertain(t *testing.T) {
	if got := certain(func(*store.Extension) consent.Status { panic("oh") }, nil); got != consent.NotAsked {
		t.Errorf("%q", got)
	}
	if got := certain(func(*store.Extension) consent.Status { return consent.Denied }, nil); got != consent.Denied {
		t.Errorf("%q", got)
	}
}
