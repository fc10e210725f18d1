package extensions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/words"
)

// wordSection describes one part of an extension to a person. It contains no terminal control sequences.
type wordSection struct {
	Kind  string // the same in every version
	Title string
	Lines []string
}

// capabilities describes what an extension contains and may do: first the permissions of its tools, then what runs
// with all of the user's permissions. Empty sections are left out, except the permissions, which also say what is
// denied.
func capabilities(m *manifest.Manifest) []wordSection {
	rights := wordSection{Kind: "permissions", Title: "Permissions", Lines: m.Permissions.Sentences()}
	if len(m.Tools) == 0 && !m.HasPermissions {
		rights.Lines = []string{"It has no tools, and nothing is granted."}
		if len(m.MCPServers) > 0 || m.Found.Hooks {
			rights.Lines = []string{"It has no tools that permissions could bind. What Gemini CLI runs of it, servers and hooks, has all your rights."}
		}
	}
	all := []wordSection{rights}
	add := func(title string, lines []string) {
		if len(lines) > 0 {
			all = append(all, wordSection{Kind: title, Title: title, Lines: lines})
		}
	}
	add("Tools", toolWords(m))
	add("MCP servers (Gemini CLI starts them by itself, outside any sandbox, with all your rights)", serverWords(m))
	if m.Found.Hooks {
		all = append(all, wordSection{
			Kind: "hooks", Title: "Hooks (Gemini CLI runs them by itself, outside any sandbox, with all your rights)", Lines: printable(m.Found.HookCommands)})
	}
	add("Context files (sent with every session's first prompt)", printable(m.Found.ContextFiles))
	add("Core tools that it switches off", printable(m.ExcludeTools))
	add("Documents", docWords(m))
	add("Examples", exampleWords(m))
	add("Slash commands", printable(m.Found.Commands))
	add("Skills", printable(m.Found.Skills))
	add("Sub-agents", printable(m.Found.Agents))
	add("Policies (an extension's can only ask or deny)", printable(m.Found.Policies))
	add("Settings that it asks for", settingWords(m))
	var themes []string
	for _, t := range m.Themes {
		themes = append(themes, words.Printable(t.Name))
	}
	add("Themes", themes)
	if m.MigratedTo != "" {
		add("Moved to", []string{words.Printable(words.Address(m.MigratedTo))})
	}
	return all
}

func toolWords(m *manifest.Manifest) []string {
	var lines []string
	for _, t := range m.Tools {
		lines = append(lines,
			words.Printable(t.Signature()),
			"    "+words.Printable(t.Description),
			fmt.Sprintf("    runs %s with %s, answers %s", words.Printable(t.Executable), words.Printable(t.Runtime), answerWord(t.Output)))
	}
	return lines
}

func answerWord(output string) string {
	if output == "json" {
		return "JSON"
	}
	return "text"
}

func serverWords(m *manifest.Manifest) []string {
	var lines []string
	for _, s := range m.MCPServers {
		what := strings.TrimSpace(s.Command + " " + strings.Join(s.Args, " "))
		if s.URL != "" && s.Command != "" {
			what = words.Address(s.URL) + " (another machine), and not its command " + what // so the CLI uses the URL
		} else if s.URL != "" {
			what = words.Address(s.URL) + " (another machine)"
		}
		line := s.Name + ": " + what
		if len(s.Headers) > 0 {
			line += ", sending it " + strings.Join(valueWords(s.Headers), ", ")
		}
		if s.SignIn != "" {
			line += ", signing in as you (" + s.SignIn + ")"
		}
		if s.Cwd != "" {
			line += ", in " + s.Cwd
		}
		if len(s.Env) > 0 {
			line += ", with " + strings.Join(valueWords(s.Env), ", ")
		}
		lines = append(lines, words.Printable(line))
	}
	return lines
}

// valueWords shows values, because a variable such as NODE_OPTIONS can run code like an argument, and a header such
// as X: $API_KEY reveals a variable of the user. It hides values that look like secrets.
func valueWords(values map[string]string) []string {
	var words []string
	for _, n := range slices.Sorted(maps.Keys(values)) {
		value := values[n]
		for _, secret := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "AUTH", "CREDENTIAL", "COOKIE"} {
			if strings.Contains(strings.ToUpper(n), secret) && !strings.Contains(value, "$") {
				value = "***"
			}
		}
		words = append(words, n+"="+value)
	}
	return words
}

func docWords(m *manifest.Manifest) []string {
	var lines []string
	for _, d := range m.Docs {
		lines = append(lines, words.Printable(fmt.Sprintf("%s: %s (%s)", d.Name, d.Description, d.File)))
	}
	return lines
}

func exampleWords(m *manifest.Manifest) []string {
	var lines []string
	for _, e := range m.Examples {
		lines = append(lines, words.Printable(e.Prompt+" → "+e.ToolCall))
	}
	return lines
}

func settingWords(m *manifest.Manifest) []string {
	var lines []string
	for _, s := range m.Settings {
		line := fmt.Sprintf("%s: %s (%s)", s.Name, s.Description, s.EnvVar)
		if s.Sensitive {
			line += ", a secret"
		}
		lines = append(lines, words.Printable(line))
	}
	return lines
}

func printable(texts []string) []string {
	var out []string
	for _, t := range texts {
		out = append(out, words.Printable(t))
	}
	return out
}
