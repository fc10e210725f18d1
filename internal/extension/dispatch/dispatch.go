// Package dispatch answers what a model asks of extensions: it runs their
// tools, reads their documents and describes them, each as one text that tells the model what it needs to go on.
// Nothing of an extension is told before the user agreed to it (SPEC P-3).
package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/runner"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// pageBytes bounds a long text in one reply. With the words around it, the reply stays
// below the 40,000 characters from which Gemini CLI cuts a result (SPEC P-4).
const pageBytes = 36_000

// maxOutput is the most of a tool's answer that is kept for later pages, in bytes.
const maxOutput = 4 << 20

// Options of New. Store, Runner and WorkDir are required.
type Options struct {
	Store  *store.Store
	Runner *runner.Runner
	// WorkDir is the folder that tools are called from, absolute.
	WorkDir string
	// Roots tells the known workspaces, absolute, at each call; nil for none.
	Roots func(context.Context) []string
	// Used says when a tool of each extension ran last, by the extension's name; nil for never.
	Used func() map[string]time.Time
	// ForUser says that the user asks, not a model: documents and descriptions then need no consent.
	ForUser bool
	// Ends says that this process ends after one answer, so nothing is kept for further pages, and a model is told of none.
	Ends bool
}

// A Dispatcher answers for one working folder. Its methods may be called from several goroutines.
type Dispatcher struct {
	o Options

	mu     sync.Mutex // guards what follows
	set    *capability.Set
	shelf  shelf
	runner *runner.Runner
	later  map[string]bool // extensions about which the user answered "not now"
}

// New returns a Dispatcher that offers nothing until Refresh.
func New(o Options) *Dispatcher {
	if o.Roots == nil {
		o.Roots = func(context.Context) []string { return nil }
	}
	if o.Used == nil {
		o.Used = func() map[string]time.Time { return nil }
	}
	return &Dispatcher{o: o, set: capability.New(nil), runner: o.Runner, later: map[string]bool{}}
}

// UseRunner makes r run the tools that are called from now on.
func (d *Dispatcher) UseRunner(r *runner.Runner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runner = r
}

func (d *Dispatcher) tools() *runner.Runner {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runner
}

// Set returns what Refresh offered last.
func (d *Dispatcher) Set() *capability.Set {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set
}

// Refresh reads from the disk what is offered now. On an error the last set stays.
func (d *Dispatcher) Refresh() (*capability.Set, error) {
	all, err := d.o.Store.List()
	if err != nil {
		return d.Set(), err
	}
	answers := d.answers(all, here)
	set := capability.New(candidates(all, here, answers, d.o.Used()))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set = set
	return set, nil
}

// certain looks up the answer about x. An internal mistake there counts as "not asked" for x alone.
func certain(answer func(*store.Extension) consent.Status, x *store.Extension) (said consent.Status) {
	defer func() {
		if recover() != nil {
			said = consent.NotAsked
		}
	}()
	return answer(x)
}

// answers returns the user's answers about the wanted extensions. It reads every file of each, so it reads several
// extensions at once.
func (d *Dispatcher) answers(all []*store.Extension, wanted func(*store.Extension) bool) func(*store.Extension) (agreed, refused bool) {
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
		next = make(chan *store.Extension)
		out  = map[*store.Extension]consent.Status{}
	)
	answer := d.tools().AnswersNow()
	if d.o.ForUser {
		answer = func(*store.Extension) consent.Status { return consent.Allowed }
	}
	for range min(runtime.GOMAXPROCS(0), len(all)) {
		wait.Go(func() {
			for x := range next {
				said := certain(answer, x)
				mu.Lock()
				out[x] = said
				mu.Unlock()
			}
		})
	}
	for _, x := range all {
		if x.Problem == "" && len(x.Manifest.Tools)+len(x.Manifest.Docs) > 0 && x.Name != capability.Bridge && wanted(x) {
			next <- x
		}
	}
	close(next)
	wait.Wait()
	return func(x *store.Extension) (agreed, refused bool) {
		return out[x] == consent.Allowed, out[x] == consent.Denied
	}
}

// consented asks the runner. An error counts as no.
func (d *Dispatcher) consented(x *store.Extension) bool {
	ok, err := d.tools().Consented(x)
	return ok && err == nil
}

// A Reply goes back to a model.
type Reply struct {
	// Name is the tool that answered, as the model may call it.
	Name string
	// Text is for the model. It has no tag that means something in a prompt, except around a document.
	Text string
	// Failed says that Text tells why there is no answer.
	Failed bool
	// Refused says that it failed because the user has not agreed, or refused.
	Refused bool
}

func failed(name string, err error) Reply {
	return Reply{Name: name, Text: prompt.Data(err.Error()), Failed: true}
}

// Call calls a tool by any of its names, pollux's own tools among them. args is one JSON object or nil.
// The end of ctx ends the tool with everything that it started.
func (d *Dispatcher) Call(ctx context.Context, name string, args json.RawMessage) Reply {
	switch name {
	case capability.ReadDoc, capability.Bridge + "." + capability.ReadDoc:
		return d.readDocCall(args)
	case capability.Describe, capability.Bridge + "." + capability.Describe:
		return d.describeCall(args)
	case capability.RunTool, capability.Bridge + "." + capability.RunTool:
		return d.runCall(ctx, args)
	case capability.AskUser, capability.Bridge + "." + capability.AskUser:
		return d.askUser(ctx, args)
	}
	tool, err := d.Set().Tool(name)
	if unknown := new(capability.UnknownError); errors.As(err, &unknown) {
		// The extension may be new or just allowed, or wait for the user, who is asked now.
		if set, again := d.Refresh(); again == nil {
			if tool, err = set.Tool(name); err != nil {
				if waiting, ok := set.WaitingTool(name); ok {
					tool, err = waiting, nil
				}
			}
		}
	}
	if err != nil {
		return failed(name, err)
	}
	return d.CallTool(ctx, tool, args)
}

// runCall calls the tool that the arguments name.
func (d *Dispatcher) runCall(ctx context.Context, args json.RawMessage) Reply {
	var a struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := strictly(args, &a); err != nil || a.Name == "" {
		return failed(capability.RunTool, fmt.Errorf("%s takes name, the name of a tool, and arguments, an object with the tool's own; %s(name) lists them", capability.RunTool, capability.Describe))
	}
	var text string
	if json.Unmarshal(a.Arguments, &text) == nil && a.Arguments != nil { // an object as a text, as some models write it; null is none
		a.Arguments = json.RawMessage(text)
	}
	if capability.Reserved(a.Name) {
		return failed(capability.RunTool, fmt.Errorf("%q is no tool of an extension; call it by itself", a.Name))
	}
	return d.Call(ctx, a.Name, a.Arguments)
}

// CallTool calls a tool of a set.
func (d *Dispatcher) CallTool(ctx context.Context, tool capability.Tool, args json.RawMessage) Reply {
	result, err := d.tools().Run(ctx, runner.Request{
		Extension: tool.Extension.Name, Tool: tool.Name, Args: args, WorkDir: d.o.WorkDir, Roots: d.o.Roots(ctx),
	})
	r := Reply{Name: tool.Callable}
	r.Text, r.Failed = runner.Reply(result, err, maxOutput)
	var refused *runner.RefusedError
	r.Refused = errors.As(err, &refused) && refused.Why == runner.BecauseConsent
	if json.Valid([]byte(r.Text)) {
		r.Text = prompt.DataJSON(r.Text)
	} else {
		r.Text = prompt.Data(r.Text)
	}
	r.Text = d.firstPage(r.Text)
	return r
}

// firstPage shows the beginning of a long text, its end, where programs put their conclusions, and how to get the rest. The whole
// text is kept for a while.
func (d *Dispatcher) firstPage(text string) string {
	if len(text) <= pageBytes {
		return text
	}
	head, end := cut(text, 0, pageBytes-tailBytes)
	tail := words.ClipEnd(text, tailBytes)
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < tailBytes/4 { // from the beginning of a line where that is near
		tail = tail[i+1:]
	}
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	between := "what is between is not kept: ask for less at a time"
	if !d.o.Ends {
		d.mu.Lock()
		name := d.shelf.put(text)
		d.mu.Unlock()
		between = "read on with " + readOn(name, end)
	}
	return fmt.Sprintf("%s[bytes 0 to %d above, and %d to %d below, of %d; %s]\n%s", head, end, len(text)-len(tail), len(text), len(text), between, tail)
}

// tailBytes is how much of the end of a long result its first page shows.
const tailBytes = pageBytes / 4

// readOn returns the call that reads a text from a byte on.
func readOn(name string, offset int) string {
	return fmt.Sprintf("%s(name=%q, offset=%d)", capability.ReadDoc, name, offset)
}

// page returns the part of a text that begins at offset, and how to get the rest by capability.ReadDoc.
func page(name, text string, offset int) string {
	return pageBy(text, offset, func(end int) string { return readOn(name, end) })
}

// pageBy is page with another way to the rest, from the byte end on.
func pageBy(text string, offset int, next func(end int) string) string {
	offset = max(0, min(offset, len(text)))
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	part, end := cutPage(text, offset)
	if end == len(text) {
		return part
	}
	return fmt.Sprintf("%s\n[bytes %d to %d of %d; go on with %s]", part, offset, end, len(text), next(end))
}

// cutPage is one page of a text, and where it ends.
func cutPage(text string, offset int) (part string, end int) { return cut(text, offset, pageBytes) }

// cut returns at most so many bytes of a text from offset on, and where they end.
func cut(text string, offset, bytes int) (part string, end int) {
	end = offset + len(words.Clip(text[offset:], bytes))
	if end < len(text) { // at the end of a line where that is near
		if i := strings.LastIndexByte(text[offset:end], '\n'); i > bytes*3/4 {
			end = offset + i + 1
		}
	}
	return text[offset:end], end
}

// A shelf keeps the last long results.
type shelf struct {
	next  int
	texts []shelved
}

type shelved struct{ name, text string }

// maxShelved is how many long results are kept, maxShelvedBytes how much of them.
const (
	maxShelved      = 16
	maxShelvedBytes = 16 << 20
)

// resultPrefix begins the names of results, which no document's name can.
const resultPrefix = "result:"

func (s *shelf) put(text string) string {
	s.next++
	name := fmt.Sprintf("%s%d", resultPrefix, s.next)
	s.texts = append(s.texts, shelved{name, text})
	total := 0
	for i := len(s.texts) - 1; i >= 0; i-- {
		if total += len(s.texts[i].text); len(s.texts)-i > maxShelved || total > maxShelvedBytes {
			s.texts = append([]shelved(nil), s.texts[i+1:]...)
			break
		}
	}
	return name
}

func (s *shelf) get(name string) (string, bool) {
	for _, t := range s.texts {
		if t.name == name {
			return t.text, true
		}
	}
	return "", false
}
