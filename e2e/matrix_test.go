package e2e

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var matrix = flag.Bool("matrix", false, "write into docs/agents.md which stories passed with which published agents")

// published are the agents of the table, the packages they come in, and the tests that tell their stories.
var published = []struct{ label, pkg, tests string }{ //nolint:gochecknoglobals // constant
	{"Gemini CLI", "@google/gemini-cli", "TestDecisions TestTexts TestContextReachesTheModel TestCrash TestRestart TestGeminiStories"},
	{"Qwen Code", "@qwen-code/qwen-code", "TestQwen TestQwenSurvives TestQwenStories TestQwenEnds"},
	{"Claude Code", "@anthropic-ai/claude-code", "TestClaude TestClaudeElsewhere TestClaudeEnds TestClaudeStories"},
	{"opencode", "opencode-ai", "TestOpenCode"},
	{"GitHub Copilot CLI", "@github/copilot", "TestCopilot TestCopilotElsewhere TestCopilotStories"},
	{"Codex", "@openai/codex", "TestCodex"},
}

// stories are the rows of the table: names of steps.
var stories = []string{ //nolint:gochecknoglobals // constant
	"context", "mention", "accept", "edit and accept", "reject", "answered in the terminal", "two proposals", "two sessions", "a file with CRLF",
	"BOM, emoji and 1 MB",
	"the agent is killed", "companion's end", "killed and back",
}

// told are the stories of this run, by test.
var told struct { //nolint:gochecknoglobals // of the run
	sync.Mutex

	ran    map[string]bool
	passed map[string][]string
}

// tells notes how a story has ended.
func tells(t testing.TB, story string) {
	told.Lock()
	defer told.Unlock()
	if told.ran == nil {
		told.ran, told.passed = map[string]bool{}, map[string][]string{}
	}
	told.ran[t.Name()] = true
	if !t.Failed() {
		told.passed[t.Name()] = append(told.passed[t.Name()], story)
	}
}

const matrixBegin, matrixEnd = "<!-- stories: written by .ci/long agents -->\n", "<!-- end -->\n"

// writeMatrix puts what this run has told into the table. Agents that did not run keep their column.
func writeMatrix() error {
	file := filepath.Join("..", "docs", "agents.md")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, _ := strings.Cut(string(data), matrixBegin)
	old, tail, _ := strings.Cut(rest, matrixEnd)
	versions, err := versionsOfPeers()
	if err != nil {
		return err
	}
	var columns [][]string
	for _, p := range published {
		columns = append(columns, columnOf(p.label, versions[p.pkg], strings.Fields(p.tests), columnIn(old, p.label)))
	}
	return os.WriteFile(file, []byte(head+matrixBegin+tableOf(columns)+matrixEnd+tail), 0o600)
}

// columnOf is an agent's column, its name first: as this run has it, or as it was.
func columnOf(label, version string, tests, old []string) []string {
	if !slices.ContainsFunc(tests, func(test string) bool { return told.ran[test] }) {
		return old
	}
	column := []string{label + " " + version}
	for _, story := range stories {
		cell := "–"
		for _, test := range tests {
			if slices.Contains(told.passed[test], story) {
				cell = "yes"
			}
		}
		column = append(column, cell)
	}
	return column
}

// columnIn finds the column of an agent in a table.
func columnIn(table, label string) (column []string) {
	at := -1
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if at < 0 {
			at = slices.IndexFunc(cells, func(cell string) bool { return strings.HasPrefix(cell, label+" ") })
		}
		if at >= 0 && at < len(cells) && !strings.HasPrefix(cells[0], "---") {
			column = append(column, cells[at])
		}
	}
	return column
}

func tableOf(columns [][]string) string {
	lines := make([]string, len(stories)+1)
	for i := range lines {
		lines[i] = "| story |"
		if i > 0 {
			lines[i] = "| " + stories[i-1] + " |"
		}
	}
	rule := "| --- |"
	for _, column := range columns {
		if len(column) != len(lines) {
			continue // it has never run
		}
		rule += " --- |"
		for i, cell := range column {
			lines[i] += " " + cell + " |"
		}
	}
	return strings.Join(slices.Insert(lines, 1, rule), "\n") + "\n"
}

// versionsOfPeers are the versions that the tests pin, by package.
func versionsOfPeers() (map[string]string, error) {
	all := map[string]string{}
	for _, dir := range []string{"peers", "peers/agents"} {
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			return nil, err
		}
		var m struct{ Dependencies, DevDependencies map[string]string }
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, err
		}
		for _, list := range []map[string]string{m.Dependencies, m.DevDependencies} {
			for name, version := range list {
				all[name] = version
			}
		}
	}
	return all, nil
}

// A run of some agents rewrites their columns, and the table is what it was otherwise.
func TestMatrix(t *testing.T) {
	t.Parallel()
	yes := func(label string) []string {
		return append([]string{label}, slices.Repeat([]string{"yes"}, len(stories))...)
	}
	none := append([]string{"Codex 2"}, slices.Repeat([]string{"–"}, len(stories))...)
	table := tableOf([][]string{yes("Qwen Code 1"), nil, none})
	if n := strings.Count(table, "\n"); n != len(stories)+2 || strings.Contains(table, "Claude") {
		t.Errorf("%d lines:\n%s", n, table)
	}
	for label, want := range map[string][]string{"Qwen Code": yes("Qwen Code 1"), "Codex": none, "Claude Code": nil} {
		if got := columnIn(table, label); !slices.Equal(got, want) {
			t.Errorf("%s: %q", label, got)
		}
	}
	if got := columnOf("Codex", "3", []string{"TestNobody"}, none); !slices.Equal(got, none) {
		t.Errorf("it did not run: %q", got)
	}
	versions, err := versionsOfPeers()
	for _, p := range published {
		if err != nil || versions[p.pkg] == "" {
			t.Errorf("%s has no version: %v", p.label, err)
		}
	}
	data, err := os.ReadFile(filepath.Join("..", "docs", "agents.md"))
	if err != nil || !strings.Contains(string(data), matrixBegin) || !strings.Contains(string(data), matrixEnd) {
		t.Errorf("docs/agents.md has no place for the table: %v", err)
	}
	_, table, _ = strings.Cut(string(data), matrixBegin)
	table, _, _ = strings.Cut(table, matrixEnd)
	for _, p := range published {
		if column := columnIn(table, p.label); len(column) != len(stories)+1 || column[0] != p.label+" "+versions[p.pkg] {
			t.Errorf("docs/agents.md has %q; run the tests of %s with -matrix", column, p.label)
		}
	}
}
