package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/runner"
)

// askUser asks the user about the extensions that wait for consent, or about one of them. The model hears of allowed
// extensions only; of the others not even their names (SPEC P-3). A question that the user put off is not repeated in this
// session, unless the extension is asked for by name.
func (d *Dispatcher) askUser(ctx context.Context, args json.RawMessage) Reply {
	var a struct {
		Name string `json:"name"`
	}
	if err := strictly(args, &a); err != nil {
		return failed(capability.AskUser, fmt.Errorf("%s takes name, the name of an extension that the user spoke of, or nothing", capability.AskUser))
	}
	set, err := d.Refresh()
	if err != nil {
		return failed(capability.AskUser, err)
	}
	waiting := set.Waiting()
	if a.Name != "" {
		if x, err := set.Extension(a.Name); err == nil {
			return Reply{Name: capability.AskUser, Text: d.firstPage("The user has agreed to it already.\n" + listing(set.Only(func(y *capability.Extension) bool { return y == x })))}
		}
		waiting = slices.DeleteFunc(waiting, func(name string) bool { return !strings.EqualFold(name, a.Name) })
		if len(waiting) == 0 {
			return failed(capability.AskUser, fmt.Errorf("no extension %q is installed and waits for the user's consent", prompt.Line(a.Name, 80)))
		}
	}
	allowed, refusal := d.askEach(ctx, waiting, a.Name != "")
	if len(allowed) == 0 {
		switch {
		case refusal != nil:
			return Reply{Name: capability.AskUser, Text: prompt.Data(refusal.Error()), Failed: true, Refused: true}
		case len(waiting) > 0:
			return Reply{Name: capability.AskUser, Text: "the user has been asked in this session and did not agree; go on without, or let the user name the extension", Failed: true, Refused: true}
		}
		return Reply{Name: capability.AskUser, Text: "No extension waits for the user's consent."}
	}
	if set, err = d.Refresh(); err != nil {
		return failed(capability.AskUser, err)
	}
	return Reply{Name: capability.AskUser, Text: d.firstPage("The user agreed. There are now:\n" + listing(set.Only(func(x *capability.Extension) bool { return slices.Contains(allowed, x.Name) })))}
}

// askEach asks about one extension after another, until the user wants no more questions. With again, it repeats questions that were put off.
func (d *Dispatcher) askEach(ctx context.Context, names []string, again bool) (allowed []string, refusal error) {
	for _, name := range names {
		d.mu.Lock()
		later := d.later[name]
		d.mu.Unlock()
		if later && !again {
			continue
		}
		err := d.tools().Agree(ctx, runner.Request{Extension: name, WorkDir: d.o.WorkDir, Roots: d.o.Roots(ctx)})
		var refused *runner.RefusedError
		switch {
		case err == nil:
			allowed = append(allowed, name)
		case ctx.Err() != nil:
			return allowed, context.Cause(ctx)
		case errors.Is(err, consent.ErrNobody):
			return allowed, errors.New("nobody can be asked from here: no editor of the user's is open for this folder that could ask. They agree in a terminal of their own with: pollux extensions consent grant NAME (pollux extensions list shows the names)")
		case errors.As(err, &refused) && refused.Err == nil: // not now
			d.mu.Lock()
			d.later[name] = true
			d.mu.Unlock()
			return allowed, errors.New("the user did not agree; go on without")
		case errors.As(err, &refused) && refused.Why == runner.BecauseConsent:
			refusal = errors.New("the user did not agree; go on without")
		default:
			refusal = errors.New("the user could not be asked: the extension that waits has changed or cannot be read")
		}
	}
	return allowed, refusal
}
