package conform

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/words"
)

// compare makes the checks of one step: of a response its status, headers and body; of events their content. Text
// that companions may word freely is not compared.
func (r *run) compare(a *contract.Archive, want, got contract.Step) {
	name := a.Name + "/" + want.File
	switch want.Kind {
	case "response":
		w, g := parseAnswer(want.Text), parseAnswer(got.Text)
		r.verdict(name+"/status", a.About, w.status == g.status, w.status, g.status+" "+clip(g.body))
		if w.status != g.status {
			return
		}
		for _, h := range []string{"Content-Type", "Mcp-Session-Id"} {
			if value := w.head[h]; value != "" {
				r.verdict(name+"/"+h, a.About, sameHeader(h, value, g.head[h]), h+": "+value, h+": "+g.head[h])
			}
		}
		if w.body != "" {
			ok, why := sameBody(w.body, g.body)
			if a.Agent() != "" {
				ok, why = sameLines(w.body, g.body, true)
			}
			r.verdict(name+"/body", a.About, ok, w.body, why+": "+g.body)
		}
	case "messages":
		ok, why := sameLines(want.Text, got.Text, r.t.Driver != nil)
		r.verdict(name, a.About, ok, want.Text, why+": "+got.Text)
	case "events":
		if a.Agent() != "" {
			ok, why := sameLines(dataOf(want.Text), dataOf(got.Text), r.t.Driver != nil)
			r.verdict(name, a.About, ok, want.Text, why+": "+got.Text)
			return
		}
		ok, why := sameEvents(parseEvents(want.Text), parseEvents(got.Text), r.t.Driver != nil)
		r.verdict(name, a.About, ok, want.Text, why+": "+got.Text)
		if strings.Contains(want.Text, "id: ") && a.Number() == "T-6" {
			r.verdict(name+"/ids", a.About, strings.Contains(got.Text, "id: "), "outcomes that carry ids", got.Text)
		}
	}
}

func (r *run) verdict(name, about string, ok bool, want, got string) {
	c := Check{Name: name, About: about, Result: Pass, Evidence: "saw " + short(strings.TrimPrefix(got, ": "))}
	if !ok {
		c.Result, c.Evidence = Fail, "wanted "+clip(want)+"\nsaw "+clip(got)
	}
	r.note(c)
}

// clip bounds evidence.
func clip(s string) string {
	return cmp.Or(words.Shorten(strings.TrimSpace(s), 600), "nothing")
}

// short returns enough of the evidence to recognise it.
func short(s string) string {
	return cmp.Or(words.Shorten(strings.Join(strings.Fields(s), " "), 200), "nothing")
}

// An answer is a response in the form that vectors use.
type answer struct {
	status string // "200"
	head   map[string]string
	body   string
}

func parseAnswer(text string) answer {
	head, body, _ := strings.Cut(text, "\n\n")
	a := answer{head: map[string]string{}, body: strings.TrimSpace(body)}
	for i, line := range strings.Split(head, "\n") {
		if words := strings.Fields(line); i == 0 && len(words) > 1 {
			a.status = words[1]
		} else if name, value, ok := strings.Cut(line, ": "); ok {
			a.head[name] = value
		}
	}
	return a
}

func sameHeader(name, want, got string) bool {
	if name == "Content-Type" {
		return strings.HasPrefix(got, want) || want == "application/json" && strings.HasPrefix(got, "text/event-stream")
	}
	return got != ""
}

// sameBody compares two JSON-RPC bodies by what the CLI reads.
func sameBody(want, got string) (ok bool, why string) {
	if i := strings.Index(got, "data: "); i >= 0 && !strings.HasPrefix(got, "{") { // an event stream with one response
		got, _, _ = strings.Cut(got[i+len("data: "):], "\n")
	}
	var w, g any
	if json.Unmarshal([]byte(want), &w) != nil {
		return true, "" // plain text, in the companion's own words
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		return false, "it is not JSON"
	}
	return sameMessage(w, g)
}

func sameMessage(w, g any) (bool, string) {
	if list, ok := w.([]any); ok {
		other, ok := g.([]any)
		if !ok || len(other) != len(list) {
			return false, "it is not a list of as many messages"
		}
		for i := range list {
			if ok, why := sameMessage(list[i], other[i]); !ok {
				return false, why
			}
		}
		return true, ""
	}
	wm, _ := w.(map[string]any)
	gm, ok := g.(map[string]any)
	if !ok {
		return false, "it is not an object"
	}
	if _, rpc := wm["jsonrpc"]; !rpc {
		return sameKeys(wm, gm)
	}
	if gm["jsonrpc"] != "2.0" || !reflect.DeepEqual(wm["id"], gm["id"]) {
		return false, "jsonrpc or id differ"
	}
	_, wantsError := wm["error"]
	e, isError := gm["error"].(map[string]any)
	if isError != wantsError {
		return false, "one is an error, the other is not"
	}
	if isError {
		code, hasCode := e["code"].(float64)
		text, hasText := e["message"].(string)
		return hasCode && hasText && text != "" && code == float64(int(code)), "the error has no whole code or no message"
	}
	wr, _ := wm["result"].(map[string]any)
	gr, _ := gm["result"].(map[string]any)
	return sameResult(wr, gr)
}

// sameKeys reports whether got has every member of want.
func sameKeys(want, got map[string]any) (bool, string) {
	for name := range want {
		if _, ok := got[name]; !ok {
			return false, name + " is missing"
		}
	}
	return true, ""
}

func sameResult(w, g map[string]any) (bool, string) {
	if ok, why := sameKeys(w, g); !ok {
		return false, why
	}
	if !reflect.DeepEqual(w["protocolVersion"], g["protocolVersion"]) {
		return false, "another protocol version"
	}
	if tools, ok := w["tools"].([]any); ok {
		return sameTools(tools, g["tools"])
	}
	if (w["isError"] == true) != (g["isError"] == true) {
		return false, "isError differs"
	}
	wt, wantsText := firstText(w)
	gt, hasText := firstText(g)
	switch {
	case wantsText && w["isError"] == true:
		return hasText && gt != "", "it does not say why"
	case wantsText:
		return sameClosed(wt, gt), "the final content differs"
	}
	return true, ""
}

func firstText(result map[string]any) (string, bool) {
	list, _ := result["content"].([]any)
	for _, b := range list {
		if m, ok := b.(map[string]any); ok && m["type"] == "text" {
			text, ok := m["text"].(string)
			return text, ok
		}
	}
	return "", false
}

// sameClosed compares two responses to closeDiff by what the CLI reads: the text under "content", or its absence.
func sameClosed(want, got string) bool {
	var w, g map[string]any
	if json.Unmarshal([]byte(want), &w) != nil {
		return want == got
	}
	_ = json.Unmarshal([]byte(got), &g)
	text, edited := w["content"].(string)
	other, given := g["content"].(string)
	return edited == given && text == other
}

func sameTools(want []any, got any) (bool, string) {
	list, _ := got.([]any)
	have := map[string]bool{}
	for _, t := range list {
		m, _ := t.(map[string]any)
		schema, _ := m["inputSchema"].(map[string]any)
		if name, ok := m["name"].(string); ok && schema["type"] == "object" {
			have[name] = true
		}
	}
	for _, t := range want {
		m, _ := t.(map[string]any)
		if name, _ := m["name"].(string); !have[name] {
			return false, fmt.Sprintf("no tool %s with an inputSchema of type object", name)
		}
	}
	return true, ""
}

// An event is one notification of a stream.
type event struct {
	method string
	params json.RawMessage
}

func (e event) path() string {
	var p struct{ FilePath string }
	_ = json.Unmarshal(e.params, &p)
	return p.FilePath
}

func parseEvents(text string) (all []event) {
	for line := range strings.Lines(strings.ReplaceAll(text, "{{ms}}", "1700000000000")) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var m struct {
			Method string
			Params json.RawMessage
		}
		_ = json.Unmarshal([]byte(data), &m)
		all = append(all, event{m.Method, m.Params})
	}
	return all
}

// sameEvents compares events. Outcomes must be the same, in the same order per file, and exact in content. Of
// contexts only the last counts, as the CLI understands it; if nobody has put the editor into the vector's state, it
// is enough that the CLI understands it.
func sameEvents(want, got []event, files bool) (bool, string) {
	wo, wc := split(want)
	other, gc := split(got)
	if len(wo) != len(other) {
		return false, fmt.Sprintf("%d outcomes, not %d", len(other), len(wo))
	}
	for i := range wo {
		var w, g any
		_, _ = json.Unmarshal(wo[i].params, &w), json.Unmarshal(other[i].params, &g)
		if wo[i].method != other[i].method || !reflect.DeepEqual(w, g) {
			return false, "another outcome"
		}
	}
	switch {
	case wc == nil && gc == nil:
		return true, ""
	case gc == nil:
		return false, "the context is missing"
	case wc == nil:
		return len(want) > 0, "a context came without a change"
	}
	w, err := client.ParseContext(wc.params)
	if err != nil {
		return false, "the vector is wrong: " + err.Error()
	}
	g, err := client.ParseContext(gc.params)
	if err != nil {
		return false, "the CLI would disconnect: " + err.Error()
	}
	if !files {
		return true, ""
	}
	return sameContext(w, g)
}

func split(events []event) (outcomes []event, context *event) {
	for i, e := range events {
		if e.method == wire.NotifyContext {
			context = &events[i]
		} else {
			outcomes = append(outcomes, e)
		}
	}
	// Outcomes of two files may come in any order: a quick user's decision can overtake the response that opened the
	// diff.
	slices.SortStableFunc(outcomes, func(a, b event) int { return strings.Compare(a.path(), b.path()) })
	return outcomes, context
}

// sameContext compares what the CLI understands, except for times.
func sameContext(want, got *client.Context) (bool, string) {
	if t := trust(want); t != trust(got) && t != "" {
		return false, "isTrusted differs"
	}
	w, g := plainFiles(want), plainFiles(got)
	return w == g, "the CLI would understand another context"
}

func trust(c *client.Context) string {
	if c.Workspace == nil || c.Workspace.Trusted == nil {
		return ""
	}
	return fmt.Sprint(*c.Workspace.Trusted)
}

func plainFiles(c *client.Context) string {
	if c.Workspace == nil {
		return "[]"
	}
	files := []client.File{}
	for _, f := range c.Workspace.Files {
		f.Timestamp = 0
		if f.Selected != nil && *f.Selected == "" {
			f.Selected = nil
		}
		if !f.IsActive() {
			f.Active = nil
		}
		files = append(files, f)
	}
	data, _ := json.Marshal(files)
	return string(data)
}
