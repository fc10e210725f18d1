package runner

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// maxChecked bounds how many scripts CheckScripts checks.
const maxChecked = 50

// pythonSyntax compiles a script without running it, and prints an error in one line.
const pythonSyntax = `import sys
try:
    compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec", dont_inherit=True)
except SyntaxError as e:
    sys.exit("%s:%d: %s" % (sys.argv[1], e.lineno or 1, e.msg))
except ValueError as e:
    sys.exit("%s:1: %s" % (sys.argv[1], e))
`

// CheckScripts lets the runtimes of an extension's tools parse their scripts, in a sandbox without permissions, and
// reports syntax errors. Nothing of the extension runs. A missing runtime or sandbox is a note.
func CheckScripts(ctx context.Context, box *sandbox.Sandbox, dir string, m *manifest.Manifest) manifest.Findings {
	var found manifest.Findings
	note := func(file, format string, args ...any) {
		found = append(found, manifest.Finding{Severity: manifest.Note, File: file, Message: fmt.Sprintf(format, args...)})
	}
	var content *snapshot
	var done []string
	for _, tool := range m.Tools {
		if slices.Contains(done, tool.Executable) || len(done) == maxChecked || !checkable(tool) {
			continue
		}
		done = append(done, tool.Executable)
		if content == nil {
			abs, err := filepath.Abs(dir)
			if err == nil {
				content, err = readFolder(abs)
			}
			if err != nil || len(content.large) > 0 {
				return found // reported elsewhere, or too large
			}
		}
		script := filepath.Join(content.dir, filepath.FromSlash(tool.Executable))
		shown := filepath.Join(dir, filepath.FromSlash(tool.Executable))
		result, err := box.Run(ctx, permission.Permissions{}, sandbox.Command{
			Args: syntaxCommand(tool.Runtime, script), Copies: []sandbox.Copy{{Dir: content.dir, Files: content.files}}, Limits: sandbox.Limits{Time: 10 * time.Second, Output: 1 << 20},
		})
		switch {
		case errors.Is(err, sandbox.ErrCommand):
			note(shown, "its syntax was not checked: %s is not in PATH", Program(tool.Runtime))
		case err != nil || result.Limit != nil:
			note(shown, "its syntax was not checked: no sandbox could be set up for that, or it took too long")
			return found
		case strings.HasPrefix(string(result.Stderr), "Traceback"):
			note(shown, "its syntax was not checked: %s could not do it", Program(tool.Runtime))
		case result.Code != 0:
			line, why := syntaxError(string(result.Stderr))
			found = append(found, manifest.Finding{Severity: manifest.Error, File: shown, Line: line, Column: 1, Message: Program(tool.Runtime) + " cannot read it: " + why, Fix: "correct it"})
		}
	}
	return found
}

// checkable says whether the runtime can parse a tool's script without running it.
func checkable(tool manifest.Tool) bool {
	if tool.Runtime == runtimeNode { // Node recognises scripts by their extension
		return slices.Contains([]string{".js", ".mjs", ".cjs"}, path.Ext(tool.Executable))
	}
	return tool.Runtime == runtimePython || tool.Runtime == runtimeShell
}

func syntaxCommand(runtime, script string) []string {
	switch runtime {
	case runtimeNode:
		return []string{Program(runtime), "--check", script}
	case runtimePython:
		return []string{Program(runtime), "-I", "-S", "-c", pythonSyntax, script}
	}
	return []string{Program(runtime), "-n", script}
}

var linePlace = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\n]*?: ?(\d+)(?:: ([^\n]*))?(?:\n|$)`) })

// syntaxError returns the line and reason in a runtime's message.
func syntaxError(text string) (line int, why string) {
	line = 1
	if m := linePlace().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits; a number that is too long gives no line
		why = m[2]
	}
	for l := range strings.SplitSeq(text, "\n") {
		if _, rest, ok := strings.Cut(l, "SyntaxError: "); ok {
			why = rest
		}
	}
	if why == "" {
		why, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	}
	return max(1, line), why
}
