package conform

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// dataOf returns the messages of a stream's events, a line each.
func dataOf(events string) string {
	var lines []string
	for line := range strings.Lines(events) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			lines = append(lines, data)
		}
	}
	return strings.Join(lines, "")
}

// sameLines compares messages of other agents' wires, a line each, by what the agent reads. files says that somebody has put the editor
// into the vector's state; otherwise a context must only have the right form.
func sameLines(want, got string, files bool) (bool, string) {
	w, g := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	if len(w) != len(g) {
		return false, fmt.Sprintf("%d messages, not %d", len(g), len(w))
	}
	for i := range w {
		if ok, why := sameLine(w[i], g[i], files); !ok {
			return false, why
		}
	}
	return true, ""
}

func sameLine(want, got string, files bool) (bool, string) {
	var w, g map[string]any
	if json.Unmarshal([]byte(want), &w) != nil {
		return want == got || want != "" && want[0] != '(', "the socket has not ended" // (end), or plain text in the companion's own words
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		return false, "it is not JSON"
	}
	if w["type"] == "response" { // Codex's
		if !files || w["result"] == nil {
			delete(w, "result")
			_, failed := g["error"]
			if _, fails := w["error"]; failed != fails {
				return false, "one is an error, the other is not"
			}
		}
		delete(w, "handledByClientId")
		return sameObject(w, g)
	}
	if method, ok := w["method"]; ok {
		if g["method"] != method {
			return false, "another notification"
		}
		wp, _ := w["params"].(map[string]any)
		gp, _ := g["params"].(map[string]any)
		if files || method != "selection_changed" {
			return sameObject(wp, gp)
		}
		return sameKeys(wp, gp)
	}
	wr, _ := w["result"].(map[string]any)
	gr, _ := g["result"].(map[string]any)
	if wr["content"] == nil || gr["content"] == nil {
		return sameMessage(w, g)
	}
	if !reflect.DeepEqual(w["id"], g["id"]) || (wr["isError"] == true) != (gr["isError"] == true) {
		return false, "id or isError differ"
	}
	return sameTexts(blocks(wr), blocks(gr))
}

// sameTexts compares the text blocks of a tool's answer: words that mean a decision, with the text that is written, and JSON.
func sameTexts(want, got []string) (bool, string) {
	if len(want) > 0 && (len(got) == 0 || got[0] == "") {
		return false, "it has no text"
	}
	var w, g map[string]any
	switch {
	case len(want) == 0:
		return true, ""
	case json.Unmarshal([]byte(want[0]), &w) == nil:
		_ = json.Unmarshal([]byte(got[0]), &g)
		return sameObject(w, g)
	case slices.Contains([]string{"FILE_SAVED", "DIFF_REJECTED"}, want[0]):
		read := 1 // of a refusal the agent reads one
		if want[0] == "FILE_SAVED" {
			read = len(want)
		}
		return len(got) >= read && slices.Equal(want[:read], got[:read]), "another decision, or another text"
	}
	return !slices.Contains([]string{"FILE_SAVED", "DIFF_REJECTED"}, got[0]), "a decision that nobody has made"
}

// sameObject compares what an agent reads of an object: its members, except words for people.
func sameObject(want, got map[string]any) (bool, string) {
	for name, value := range want {
		other, ok := got[name]
		if !ok {
			return false, name + " is missing"
		}
		if name != "message" && name != "trigger" && !reflect.DeepEqual(value, other) {
			return false, name + " differs"
		}
	}
	return true, ""
}

// blocks returns the texts of a tool's answer.
func blocks(result map[string]any) (texts []string) {
	list, _ := result["content"].([]any)
	for _, b := range list {
		m, _ := b.(map[string]any)
		text, _ := m["text"].(string)
		texts = append(texts, text)
	}
	return texts
}
