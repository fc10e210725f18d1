package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pollux-companion/pollux/internal/cli/schematest"
	"github.com/pollux-companion/pollux/internal/pace"
)

// TestExtensionScripts runs testdata/extensions: pollux extensions as a user types it, attacks included (SPEC E, M,
// U). EXAMPLES is this repository's folder of examples.
func TestExtensionScripts(t *testing.T) {
	pace.NotRaced(t, "each command is a process of its own, and shares its memory with no other")
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
			"conforms": func(ts *testscript.TestScript, neg bool, args []string) {
				conforms(ts, neg, args, func(command string) *jsonschema.Resolved { return schematest.Strict(t, command) })
			},
		},
	})
}

// conforms checks a file (or stdout) against the schema of a command's output: conforms describe stdout
func conforms(ts *testscript.TestScript, neg bool, args []string, strict func(string) *jsonschema.Resolved) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: conforms COMMAND FILE")
	}
	command, lines := strings.CutSuffix(args[0], "-line") // one object per line
	resolved := strict(command)
	texts := []string{ts.ReadFile(args[1])}
	if lines {
		texts = strings.Split(strings.TrimSpace(texts[0]), "\n")
	}
	for _, text := range texts {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			ts.Fatalf("%s is no JSON: %v", args[1], err)
		}
		if err := resolved.Validate(v); err != nil {
			ts.Fatalf("%s: %v", args[1], err)
		}
	}
}
