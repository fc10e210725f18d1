package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestExtensionScripts runs testdata/extensions: the commands of pollux
// extensions as a user types them, attacks included (SPEC E, M, U). EXAMPLES
// is the folder of this repository's examples.
func TestExtensionScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/extensions",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"} {
				dir := filepath.Join(env.WorkDir, ".user", strings.ToLower(name))
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
				env.Setenv(name, dir)
			}
			for name, value := range map[string]string{
				"EXAMPLES": examples, "NO_COLOR": "1", "GEMINI_CLI_HOME": "", "GEMINI_FORCE_FILE_STORAGE": "true", "TZ": "UTC",
				"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com",
			} {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode": exitCode,
			"conforms": conforms,
		},
	})
}
