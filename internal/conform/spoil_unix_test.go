//go:build unix

package conform

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf16"
)

// edited changes or removes a member of the discovery file.
func edited(name string, value any) func(string) {
	return func(path string) {
		data, _ := os.ReadFile(path)
		var m map[string]any
		_ = json.Unmarshal(data, &m)
		m[name] = value
		if value == nil {
			delete(m, name)
		}
		data, _ = json.Marshal(m)
		_ = os.WriteFile(path, data, 0o600)
	}
}

// diffPath returns the file of a call of the tool, "" for any other call.
func diffPath(body []byte, tool string) string {
	var m struct {
		Params struct {
			Name      string
			Arguments struct{ FilePath string }
		}
	}
	if json.Unmarshal(body, &m) != nil || m.Params.Name != tool {
		return ""
	}
	return m.Params.Arguments.FilePath
}

func idOf(body []byte) string {
	var m struct{ ID json.RawMessage }
	_ = json.Unmarshal(body, &m)
	return string(m.ID)
}

// closed changes the text of closeDiff's responses.
func closed(change func(text string) string) func(*proxy) {
	return func(p *proxy) {
		p.body = func(_ *http.Request, asked, answered []byte) []byte {
			if !bytes.Contains(asked, []byte("closeDiff")) || bytes.Contains(answered, []byte("isError")) {
				return answered
			}
			var m struct {
				JSONRPC string `json:"jsonrpc"`
				ID      any    `json:"id"`
				Result  struct {
					Content []map[string]string `json:"content"`
				} `json:"result"`
			}
			if json.Unmarshal(answered, &m) != nil || len(m.Result.Content) == 0 {
				return answered
			}
			m.Result.Content[0]["text"] = change(m.Result.Content[0]["text"])
			data, _ := json.Marshal(m)
			return data
		}
	}
}

// rawText puts the bare text where JSON belongs.
func rawText(r *http.Request, asked, answered []byte) []byte {
	p := &proxy{}
	closed(func(text string) string {
		var final struct{ FinalContent string }
		_ = json.Unmarshal([]byte(text), &final)
		return final.FinalContent
	})(p)
	return p.body(r, asked, answered)
}

func cutAnswer(_ *http.Request, _, answered []byte) []byte {
	return answered[:min(len(answered), 64<<10)]
}

func replaceIn(text, old, by string) string { return strings.Replace(text, old, by, 1) }

// outcomes changes the events about diffs; contexts changes the others.
func outcomes(change func(event string) string) func(*proxy) {
	return func(p *proxy) {
		p.event = func(_ *http.Request, e string) string {
			if strings.Contains(e, "contextUpdate") {
				return e
			}
			return change(e)
		}
	}
}

func contexts(change func(event string) string) func(*proxy) {
	return func(p *proxy) {
		p.event = func(_ *http.Request, e string) string {
			if !strings.Contains(e, "contextUpdate") {
				return e
			}
			return change(e)
		}
	}
}

// broadcast sends every outcome to every stream.
func broadcast(p *proxy) {
	outcomes(func(e string) string { p.tellAll(e); return "" })(p)
}

// onlyAtFirst drops contexts, or outcomes, on all streams but a session's first.
func onlyAtFirst(context bool) func(*proxy) {
	return func(p *proxy) {
		p.event = func(r *http.Request, e string) string {
			if strings.Contains(e, "contextUpdate") == context && !p.isFirst(r) {
				return ""
			}
			return e
		}
	}
}

// tenAtMost passes ten outcomes per stream.
func tenAtMost(p *proxy) {
	var mu sync.Mutex
	passed := map[*http.Request]int{}
	p.event = func(r *http.Request, e string) string {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(e, "contextUpdate") {
			return e
		}
		if passed[r]++; passed[r] > 10 {
			return ""
		}
		return e
	}
}

// baseNames confuses files that have the same base name.
func baseNames(p *proxy) {
	var mu sync.Mutex
	first := map[string]string{}
	p.request = func(r *http.Request, body []byte) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		opened, ended := diffPath(body, "openDiff"), diffPath(body, "closeDiff")
		path := opened + ended
		if path == "" {
			return nil
		}
		base := filepath.Base(path)
		if first[base] == "" {
			first[base] = path
		}
		body = bytes.Replace(body, []byte(`"`+path+`"`), []byte(`"`+first[base]+`"`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return nil
	}
}

// files changes the contents of a context.
func files(change func(workspace map[string]any, files []map[string]any)) func(*proxy) {
	return contexts(func(e string) string {
		head, data, _ := strings.Cut(e, "data: ")
		var m struct {
			JSONRPC string `json:"jsonrpc"`
			Method  string `json:"method"`
			Params  struct {
				State map[string]any `json:"workspaceState"`
			} `json:"params"`
		}
		if json.Unmarshal([]byte(data), &m) != nil {
			return e
		}
		var list []map[string]any
		open, _ := m.Params.State["openFiles"].([]any)
		for _, f := range open {
			list = append(list, f.(map[string]any))
		}
		change(m.Params.State, list)
		out, _ := json.Marshal(m)
		return head + "data: " + string(out) + "\n\n"
	})
}

// firstTimes keeps the first timestamp of a file.
func firstTimes(p *proxy) {
	var mu sync.Mutex
	times := map[any]any{}
	files(func(_ map[string]any, list []map[string]any) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range list {
			if first := times[f["path"]]; first != nil {
				f["timestamp"] = first
			}
			times[f["path"]] = f["timestamp"]
		}
	})(p)
}

// staleSelection keeps the last selection.
func staleSelection(p *proxy) {
	var mu sync.Mutex
	var last any
	files(func(_ map[string]any, list []map[string]any) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range list {
			if text := f["selectedText"]; text != nil {
				last = text
			} else if f["isActive"] == true && last != nil {
				f["selectedText"] = last
			}
		}
	})(p)
}

// selections changes the text of a selection in its JSON-escaped form.
func selections(change func(string) string) func(*proxy) {
	return contexts(func(e string) string {
		before, rest, ok := strings.Cut(e, `"selectedText":"`)
		if !ok {
			return e
		}
		text, after, _ := strings.Cut(rest, `"}`)
		return before + `"selectedText":"` + change(text) + `"}` + after
	})
}

// columns changes how the characters before the cursor are counted.
func columns(count func(before string) int) func(*proxy) {
	return files(func(_ map[string]any, list []map[string]any) {
		for _, f := range list {
			c, ok := f["cursor"].(map[string]any)
			if !ok {
				continue
			}
			data, _ := os.ReadFile(f["path"].(string))
			lines := strings.Split(string(data), "\n")
			units := utf16.Encode([]rune(lines[min(len(lines), int(c["line"].(float64)))-1]))
			n := min(int(c["character"].(float64))-1, len(units))
			c["character"] = count(string(utf16.Decode(units[:n])))
		}
	})
}

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

// screenColumn returns the column on a terminal with tab stops of eight, from 1.
func screenColumn(before string) int {
	n := 0
	for _, r := range before {
		switch {
		case r == '\t':
			n += 8 - n%8
		case r > 0xffff:
			n += 2
		default:
			n++
		}
	}
	return n + 1
}
