//go:build agents

package e2e

import (
	"testing"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// TestDeniedOpenCode: what the published opencode keeps from its own tools, pollux does not name to it, and not much more (SPEC C-8, OC-6).
func TestDeniedOpenCode(t *testing.T) {
	needAgent(t, peers.OpenCode)
	const git = "ref: refs/heads/main\n"
	repository := map[string]string{".git/HEAD": git, ".git/config": "[core]\n\trepositoryformatversion = 0\n", ".git/objects/info/none": "", ".git/refs/heads/none": ""}
	with := func(files map[string]string) map[string]string {
		for file, text := range repository {
			files[file] = text
		}
		return files
	}
	for name, tc := range map[string]struct {
		denial
		denied, told int
	}{
		"patterns": {denial{
			files: with(map[string]string{"opencode.jsonc": `{"permission": {"read": {"*": "allow", "*.env*": "deny", "src/*": "deny", "src/a?.go": "allow", "dir": "deny", "x *": "deny", "[a]": "deny", "$ROOT/abs": "deny", "CASE": "deny"}}, /* c */}`}),
			reads: []string{"a.env", "deep/b.env.local", "src/x", "src/sub/x", "src/ab.go", "src/aä.go", "src/abc.go", "dir", "other/src/x", "x", "x y", "[a]", "a", "abs", "case"},
		}, 8, 4},
		"only some": {denial{
			files: with(map[string]string{"opencode.json": `{"permission": {"read": {"*": "deny", "src/*": "allow"}}}`}),
			reads: []string{"src/x", "other/x", "sub/src/x"},
		}, 2, 1},
		"several files": {denial{
			files: with(map[string]string{".opencode/opencode.json": `{"permission": {"read": {"c": "deny"}}}`, "opencode.json": `{"permission": {"read": {"b": "deny", "*": "allow"}}}`, "sub/opencode.json": `{"permission": {"read": {"*": "allow", "sub/d": "deny"}}}`}),
			cwd:   "sub", reads: []string{"sub/d", "sub/free"},
		}, 1, 1},
		"no repository": {denial{
			files: map[string]string{"opencode.json": `{"permission": {"read": {"*": "allow", "*/deep/*": "deny", "f": "deny"}}}`},
			reads: []string{"deep/x", "f", "g"},
		}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			denied, told := tc.denial.denied(t, "opencode", "read", "filePath", func(b *bench, m *model.Server) ([]string, []string) {
				return peers.Command(t, peers.OpenCode, "run", "read"), b.home.OpenCode(t, m)
			})
			if denied < tc.denied || told < tc.told {
				t.Errorf("it denies %d files, at least %d were expected; it is told of %d, at least %d were expected", denied, tc.denied, told, tc.told)
			}
		})
	}
}
