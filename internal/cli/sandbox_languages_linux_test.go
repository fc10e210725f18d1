package cli

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var slowLanguages = flag.Bool("languages", false, "build with the languages and tools that take long, too")

// A language builds a small project and runs the result, in a writable workspace, without a network.
type language struct {
	name    string // as in docs/sandbox.md
	program string // the program that it needs on this machine
	slow    bool   // takes seconds: only with -languages
	files   map[string]string
	script  string // prints ok at its end
}

// wheelScript builds a local wheel.
const wheelScript = `import zipfile
with zipfile.ZipFile("hello-1.0-py3-none-any.whl", "w") as z:
    z.writestr("hello/__init__.py", "print('ok')\n")
    z.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
    z.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("hello-1.0.dist-info/RECORD", "")
`

const (
	helloC       = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *p = malloc(3); p[0] = 'o', p[1] = 'k', p[2] = 0; puts(p); free(p); return 0; }\n"
	packageJSON  = `{"name":"n","version":"1.0.0","dependencies":{"dep":"file:./dep"}}`
	dependencyJS = "console.log('ok')\n"
)

var dependentProject = map[string]string{"package.json": packageJSON, "dep/package.json": `{"name":"dep","version":"1.0.0","main":"index.js"}`, "dep/index.js": dependencyJS}

var languages = []language{
	{name: "perl", program: "perl", files: map[string]string{"M.pm": "package M; sub f { 'ok' } 1;"}, script: `perl -I. -MM -e 'print M::f(), "\n"'`},
	{name: "gcc, make", program: "make", files: map[string]string{"a.c": helloC, "Makefile": "a: a.c\n\tcc -o a a.c\n"}, script: "make -s && ./a"},
	{name: "gcc with AddressSanitizer", program: "gcc", files: map[string]string{"a.c": helloC}, script: "gcc -fsanitize=address -o a a.c && ./a"},
	{name: "gcc with ThreadSanitizer", program: "gcc", files: map[string]string{"a.c": helloC}, script: "gcc -fsanitize=thread -o a a.c && ./a"},
	{name: "cmake", program: "cmake", slow: true, files: map[string]string{"a.c": helloC, "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n"}, script: "cmake -S . -B b >/dev/null && cmake --build b >/dev/null && b/a"},
	{name: "python, venv, pip", program: "python3", slow: true, files: map[string]string{"wheel.py": wheelScript}, script: "python3 wheel.py && python3 -m venv v && v/bin/pip install -q --no-index ./hello-1.0-py3-none-any.whl && v/bin/python -c 'import hello'"},
	{name: "npm", program: "npm", slow: true, files: dependentProject, script: "npm install -s --offline --no-audit --no-fund && node -e \"require('dep')\""},
	{name: "pnpm", program: "pnpm", slow: true, files: dependentProject, script: "pnpm install --offline --silent && node -e \"require('dep')\""},
	{name: "yarn", program: "yarn", slow: true, files: dependentProject, script: "yarn install --offline --silent && node -e \"require('dep')\""},
	{name: "go", program: "go", slow: true, files: map[string]string{"go.mod": "module x\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() { println(\"ok\") }\n"}, script: "go build -o x . && ./x"},
	{name: "cargo, rustc", program: "cargo", slow: true, files: map[string]string{"Cargo.toml": "[package]\nname = \"x\"\nversion = \"0.1.0\"\n", "src/main.rs": "fn main() { println!(\"ok\"); }\n"}, script: "cargo build -q --offline && target/debug/x"},
	{name: "javac, java", program: "javac", slow: true, files: map[string]string{"A.java": "class A { public static void main(String[] a) { System.out.println(\"ok\"); } }\n"}, script: "javac A.java && java A"},
	{name: "maven", program: "mvn", slow: true, files: map[string]string{"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>"}, script: "mvn -o -q validate && echo ok"},
	{name: "ruby", program: "ruby", files: map[string]string{"m.rb": "puts 'ok'\n"}, script: "ruby -I. -r./m -e ''"},
	{name: "php", program: "php", files: map[string]string{"m.php": "<?php echo \"ok\\n\";\n"}, script: "php m.php"},
	{name: "ocaml", program: "ocamlfind", slow: true, files: map[string]string{"a.ml": "let () = print_endline \"ok\"\n"}, script: "ocamlfind ocamlopt -o a a.ml && ./a"},
}

// TestLanguages: the languages on this machine build a small project in the sandbox; missing ones are named. The slow
// ones need -languages.
func TestLanguages(t *testing.T) {
	w := newWorld(t)
	var untested []string
	for _, l := range languages {
		program, err := exec.LookPath(l.program)
		if err != nil || l.slow && !*slowLanguages {
			untested = append(untested, l.name)
			continue
		}
		dir := filepath.Join(w.project, strings.ReplaceAll(l.name, " ", "-"))
		for name, text := range l.files {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"sandbox", "--write", "workspace", "--workspace", dir, "--time", "5m", "--"}
		script := "cd '" + dir + "' && " + l.script
		if l.program == "cargo" {
			// rustup keeps its choice in the home folder, so this runs the toolchain's own program.
			if own, err := exec.Command("rustup", "which", "cargo").Output(); err == nil {
				program = strings.TrimSpace(string(own))
			}
			out, code := combined(w, append(args, program, "build", "-q", "--offline", "--manifest-path", filepath.Join(dir, "Cargo.toml"))...)
			if code != 0 {
				t.Errorf("%s: exit code %d\n%s", l.name, code, out)
			}
			script = dir + "/target/debug/x"
		}
		if out, code := combined(w, append(args, "sh", "-c", script)...); code != 0 || !strings.Contains(out, "ok") {
			t.Errorf("%s: exit code %d\n%s", l.name, code, out)
		}
	}
	t.Logf("not tried here: %s", strings.Join(untested, "; "))
}

// TestLanguagesAreTold: the table in docs/sandbox.md lists the languages of TestLanguages.
func TestLanguagesAreTold(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sandbox.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### Languages and build tools\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told, want []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z][^|]*[^ |]) \|`).FindAllStringSubmatch(section, -1) {
		if row[1] != "tool" {
			told = append(told, row[1])
		}
	}
	for _, l := range languages {
		want = append(want, l.name)
	}
	if !slices.Equal(told, want) {
		t.Errorf("docs/sandbox.md tells of\n%q, the test tries\n%q", told, want)
	}
}
