package manifest

import (
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkLoad1000 loads and validates 1,000 extensions of the size of the example code-analyzer, with their files.
// See docs/figures.md.
func BenchmarkLoad1000(b *testing.B) {
	top := b.TempDir()
	dirs := make([]string, 1000)
	for i := range dirs {
		dirs[i] = filepath.Join(top, fmt.Sprintf("ext-%d", i))
		write(b, filepath.Join(dirs[i], FileName), fmt.Sprintf(benchManifest, i))
		write(b, filepath.Join(dirs[i], "tools", "lint.py"), "print(1)\n")
		write(b, filepath.Join(dirs[i], "docs", "rules.md"), "# Rules\n")
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range dirs {
			if _, found, err := Load(d); err != nil || len(found) > 0 {
				b.Fatal(err, found)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/extension")
}

// BenchmarkParse parses only the text.
func BenchmarkParse(b *testing.B) {
	data := fmt.Appendf(nil, benchManifest, 1)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, found := Parse("f", data); found != nil {
			b.Fatal(found)
		}
	}
}

const benchManifest = `{
  "name": "ext-%d", "version": "1.0.0", "description": "An extension for analyzing and linting code files.",
  "permissions": {"filesystem": {"read": "workspace"}, "network": {"allowedHosts": ["https://linter-rules.example.com"]}},
  "tools": [{"name": "lintFile", "description": "Lints a given file and returns a list of issues as a JSON object.",
    "executable": "tools/lint.py", "runtime": "python", "output": "json",
    "args": [{"name": "file", "type": "string", "description": "The path to the file to lint."}]}],
  "docs": [{"name": "linter-rules", "description": "A document explaining the linting rules used by the lintFile tool.", "file": "docs/rules.md"}],
  "examples": [{"prompt": "Lint the file src/index.js", "tool_call": "lintFile(file=\"src/index.js\")"}]
}`
