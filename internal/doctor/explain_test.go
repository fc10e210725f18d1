package doctor

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/peers"
)

// Each sentence of the CLI that its user can see is known, whole and in part.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Failed to connect to IDE companion extension in VS Code. Please ensure the extension is running. To install the extension, run /ide install.",
		"🔴 Disconnected: Directory mismatch. Gemini CLI is running in a different location than the open workspace in the IDE. Please run the CLI from one of the following directories: /x",
		"Directory mismatch", "directory   MISMATCH", "not supported in your current environment", "connection was lost unexpectedly",
		"To use this feature, please open a workspace folder in your IDE and try again.", client.Unsupported(), client.Disabled(),
		"IDE connection closed. To reconnect, run /ide enable.", "Request timed out", "TypeError: terminated", "Workspace trust has changed",
		"Failed to connect…", "Failed to connect...", "“Directory mismatch…”", "…not supported in your current environment…", "'connection was lost…'",
	} {
		if e, ok := Explain(text); !ok || e.Means == "" || e.Next == "" || len(e.Causes) == 0 {
			t.Errorf("%q: %+v, %v", text, e, ok)
		}
	}
	for text, says := range map[string]string{
		"Disconnected": "🔴 Disconnected", "🔴 Disconnected": "🔴 Disconnected", "SSE stream disconnected": "SSE stream",
		"Please ensure the extension is running.": "Failed to connect", "Please try reconnecting by running /ide enable": "IDE connection error",
		"Please run the CLI from one of the following directories: /x":                "Directory mismatch",
		"To use this feature, run Gemini CLI in one of these supported IDEs: VS Code": "IDE integration is not supported",
	} {
		if e, _ := Explain(text); !strings.HasPrefix(e.Says, says) {
			t.Errorf("%q is explained as %q, not as %q", text, e.Says, says)
		}
	}
	for _, text := range []string{"", "connect", "…connect…", "........", "the weather is fine"} {
		if e, ok := Explain(text); ok {
			t.Errorf("%q is explained: %+v", text, e)
		}
	}
}

// Every sentence with which the published CLI says that it is disconnected, or what /ide does not do, is explained; and what is
// explained as such a sentence is one of the CLI's.
func TestExplainsTheRealOnes(t *testing.T) {
	t.Parallel()
	bundle := filepath.Dir(peers.Need(t, peers.Gemini))
	files, err := filepath.Glob(filepath.Join(bundle, "*.js"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no code in %s: %v", bundle, err)
	}
	// Several files hold the same: the first with the client's code and the first with the command's are enough.
	marks := map[string]bool{"async function getIdeProcessInfo(": false, "No installer is available for": false, "Workspace trust has changed": false}
	var code strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for mark, had := range marks {
			if !had && bytes.Contains(data, []byte(mark)) {
				marks[mark] = true
				code.Write(data)
			}
		}
		if !slices.Contains(slices.Collect(maps.Values(marks)), false) {
			break
		}
	}
	found := 0
	for _, text := range sentencesIn(code.String()) {
		found++
		if _, ok := Explain(text); !ok {
			t.Errorf("%q is not explained", text)
		}
	}
	if found < 8 {
		t.Errorf("only %d sentences of the CLI's were found", found)
	}
	for _, e := range explanations() {
		begin, _, _ := strings.Cut(strings.TrimPrefix(e.Says, "MCP error -32001: "), " (")
		begin, _, _ = strings.Cut(strings.TrimPrefix(begin, "SSE stream disconnected: "), ": terminated")
		if !strings.Contains(code.String(), strings.TrimPrefix(begin, "🔴 ")) {
			t.Errorf("the CLI does not say %q", e.Says)
		}
	}
}

// sentencesIn finds what the CLI's code says of its editor: behind a state, or as the text of a command's answer, up to what it
// fills in.
func sentencesIn(code string) []string {
	var all []string
	for _, before := range []string{`"disconnected" /* Disconnected */,`, "text: ", "error: "} {
		for rest := code; ; {
			_, after, ok := strings.Cut(rest, before)
			if !ok {
				break
			}
			rest = after
			after = strings.TrimLeft(after[:min(len(after), 400)], " \n")
			if after == "" || !strings.ContainsAny(after[:1], "`\"") {
				continue
			}
			text, _, ok := strings.Cut(after[1:], after[:1])
			text, _, _ = strings.Cut(text, "${")
			about := strings.Contains(text, "IDE") || strings.Contains(text, "installer")
			if ok && about && len(text) >= 20 && !strings.HasPrefix(text, "Installing IDE") {
				all = append(all, text)
			}
		}
	}
	return all
}
