package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// Content checks an extension's files beyond the manifest without running anything: encodings, TOML of commands and
// policies, front matter of skills and sub-agents, first lines of scripts. Gemini CLI silently skips most faulty
// files, so the findings are warnings. Unlike Load it reads every file. It skips unreadable files: the copy that
// follows reports them.
func Content(dir string) (Findings, error) {
	root, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found Findings
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(found) >= maxFindings:
			return fs.SkipDir
		case name != "." && !IsContent(name), d.IsDir() && d.Name() == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular() && name != FileName:
			for _, f := range judgeFile(root, name) {
				f.Severity, f.File = Warning, filepath.Join(dir, filepath.FromSlash(name))
				found = append(found, f)
			}
		}
		return nil
	})
	return found, err
}

// textEndings are the endings of files that are read as text.
var textEndings = []string{".md", ".txt", ".json", ".toml", ".yaml", ".yml", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".bash"}

// judgeFile returns the faults of one file. The caller sets File and Severity.
func judgeFile(root *os.Root, name string) Findings {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil
	}
	if first, _, _ := bytes.Cut(data, []byte("\n")); bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(first, []byte("\r")) {
		return Findings{{Line: 1, Column: 1, Message: "the first line (#!) ends as on Windows (CR LF), and the system looks for a program with a CR in its name", Fix: "save it with LF alone"}}
	}
	low := strings.ToLower(name)
	if !slices.Contains(textEndings, path.Ext(low)) {
		return nil
	}
	switch parts := strings.Split(low, "/"); {
	case wide(data):
		return Findings{{Message: "it is written in UTF-16, and is read as UTF-8", Fix: "save it as UTF-8"}}
	case !utf8.Valid(data) && len(data) < maxBytes:
		line, column := place(data, invalidAt(data))
		return Findings{{Line: line, Column: column, Message: "it is not UTF-8 here", Fix: "save it as UTF-8"}}
	case parts[0] == "commands" && strings.HasSuffix(low, ".toml"):
		return judgeCommand(data)
	case parts[0] == "policies" && len(parts) == 2 && strings.HasSuffix(low, ".toml"):
		return judgeTOML(data, &map[string]any{})
	case parts[0] == "skills" && len(parts) == 3 && parts[2] == "skill.md", parts[0] == "agents" && len(parts) == 2 && strings.HasSuffix(low, ".md"):
		return judgeFront(data)
	}
	return nil
}

// invalidAt returns where a text stops being UTF-8.
func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

func judgeTOML(data []byte, into any) Findings {
	_, err := toml.Decode(string(data), into)
	var broken toml.ParseError
	switch {
	case errors.As(err, &broken):
		return Findings{{Line: broken.Position.Line, Column: max(1, broken.Position.Col), Message: "this is not TOML: " + broken.Message, Fix: "correct it; Gemini CLI passes over the file"}}
	case err != nil:
		return Findings{{Message: "this is not TOML: " + err.Error(), Fix: "correct it; Gemini CLI passes over the file"}}
	}
	return nil
}

// judgeCommand checks a slash command.
func judgeCommand(data []byte) Findings {
	command := map[string]any{}
	if found := judgeTOML(data, &command); found != nil {
		return found
	}
	if prompt, ok := command["prompt"].(string); !ok || strings.TrimSpace(prompt) == "" {
		return Findings{{Line: 1, Column: 1, Message: `the command has no "prompt", and Gemini CLI passes over it`, Fix: `add prompt = "…"`}}
	}
	if d, there := command["description"]; there {
		if _, ok := d.(string); !ok {
			return Findings{{Line: 1, Column: 1, Message: `the command's "description" is no text, and Gemini CLI passes over it`, Fix: "write it in quotes"}}
		}
	}
	return nil
}

// judgeFront checks the front matter (the lines between ---) of a skill or sub-agent. It understands only simple
// YAML: one name and value on each line. It ignores indented lines.
func judgeFront(data []byte) Findings {
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n"), "\n")
	at := func(n int, message, fix string) Findings {
		return Findings{{Line: n + 1, Column: 1, Message: message, Fix: fix}}
	}
	if strings.TrimRight(lines[0], " \t") != "---" {
		return at(0, "it does not begin with front matter, and Gemini CLI passes over it", "begin it with three lines: ---, name: …, description: …, and ---")
	}
	end := slices.IndexFunc(lines[1:], func(l string) bool { return strings.TrimRight(l, " \t") == "---" }) + 1
	if end == 0 {
		return at(0, "its front matter is never closed", "end it with a line of ---")
	}
	values := map[string]bool{}
	for n, line := range lines[1:end] {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(strings.TrimSpace(line), "#"), strings.HasPrefix(line, " "), strings.HasPrefix(line, "- "):
			continue
		case strings.HasPrefix(line, "\t"):
			return at(n+1, "front matter is indented by blanks; YAML knows no tabs there", "write blanks")
		case !ok || strings.ContainsAny(name, " \t\"'{["):
			return at(n+1, fmt.Sprintf("%q is no line of front matter", excerpt([]byte(line))), "write NAME: VALUE")
		case ambiguous(value):
			return at(n+1, fmt.Sprintf("YAML reads the value of %q in another way, or not at all", name), "put it in double quotes")
		case values[name]:
			return at(n+1, fmt.Sprintf("%q stands twice", name), "remove one of them")
		}
		values[name] = true
		if (name == "name" || name == "description") && (value == "" || value == `""` || value == "''") {
			if next := lines[n+2]; value != "" || !strings.HasPrefix(next, " ") {
				return at(n+1, fmt.Sprintf("%q is empty, and the model decides by it", name), "say it in a few words")
			}
		}
	}
	for _, name := range []string{"name", "description"} {
		if !values[name] {
			return at(0, fmt.Sprintf("its front matter has no %q, and Gemini CLI passes over it", name), fmt.Sprintf("add %s: …", name))
		}
	}
	return nil
}

// ambiguous says whether YAML would not read a one-line value as plain text: unclosed quotes or brackets, a colon or
// comment inside, or a leading special character.
func ambiguous(value string) bool {
	if value == "" {
		return false
	}
	last := value[len(value)-1]
	switch value[0] {
	case '"', '\'':
		return len(value) < 2 || last != value[0]
	case '[':
		return last != ']'
	case '{':
		return last != '}'
	case '@', '`', '%', ',', ']', '}', '*', '&', '!':
		return true
	case '|', '>':
		return false // the text follows, indented
	}
	return strings.Contains(value, ": ") || strings.HasSuffix(value, ":") || strings.Contains(value, " #")
}
