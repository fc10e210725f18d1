package past

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// What cannot be undone is said to a person in words, and to the page by its kind.
func TestNeverWritten(t *testing.T) {
	if err := error(errNeverWritten); !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission") {
		t.Error(err)
	}
}
