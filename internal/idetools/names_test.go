package idetools

import (
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/capability"
)

// No extension's tool can stand in for one of the editor's.
func TestNamesAreReserved(t *testing.T) {
	for _, one := range all(true) {
		if !capability.Reserved(one.name) {
			t.Errorf("an extension's tool could be called %s", one.name)
		}
	}
}
