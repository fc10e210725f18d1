package serve

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/console"
)

// An unreadable folder would look empty.
func TestUnreadableRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secret")
	if err := os.Mkdir(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	err := checkRoot("secret", dir)
	if os.Geteuid() == 0 { // modes do not stop root
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), `secret" cannot be read (permission denied)`) || (&console.Console{Err: io.Discard}).Report(err) == console.CodeUsage {
		t.Errorf("%v", err)
	}
}
