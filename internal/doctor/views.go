package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// views examines whether a diff would be shown. The agents' port does not tell that, but pollux's own companions do by the control channel.
func (x *examination) views(ctx context.Context, way client.Way) {
	if x.failed("tools", "context") {
		return // no diffs would be shown
	}
	const id = "views"
	told, mode := x.tells(ctx, way)
	switch {
	case told == nil:
		x.add(Finding{ID: id, Level: Note, What: "whether somebody shows a diff cannot be known here",
			Why: "only a companion of pollux's of today tells; where a diff cannot be shown, the CLI asks in its terminal"})
	case mode == review.AcceptAll:
		x.ok(id, "your policy accepts every diff without showing it")
	case mode == review.Terminal:
		x.add(Finding{ID: id, Level: Note, What: "your policy leaves every diff to the terminal",
			Why: "the CLI asks there, and no editor shows its changes", Remark: "the policy is changed where diffs are shown: in the editor, on the page, in pollux review"})
	case !told.Any():
		x.add(Finding{ID: id, Level: Fault, What: "no editor and no page is open that would show a diff",
			Why:  "the companion refuses a diff that nobody would see, and the CLI asks in its terminal",
			Mend: "pollux page", Remark: "or, to decide in a terminal: pollux review"})
	case *told == control.Views{Browser: true}:
		x.add(Finding{ID: id, Level: Note, What: "nobody looks yet; the companion opens the browser for the first diff",
			Why: "where that fails, the CLI asks in its terminal", Mend: "pollux page", Remark: "opens it now"})
	default:
		x.ok(id, "a diff would be shown: "+strings.Join(names(*told), ", "))
	}
}

// tells asks the companion behind a way for its views, and for its policy's mode for every diff; nil when it is not pollux's, or
// of a release that does not tell.
func (x *examination) tells(ctx context.Context, way client.Way) (*control.Views, review.Mode) {
	var told *control.Views
	mode := review.Ask
	all := control.List(ctx, x.o.Run) // which may take as long as it takes a stopped one not to answer
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, c := range all {
		own, err := c.Connection(ctx)
		if err == nil && way.Port != 0 && own.Port == way.Port && (own.Token == way.Token || x.r.home != "") { // each agent has a token of its own; this is Gemini CLI's
			told = c.Status.Views
			mode = general(ctx, c)
		}
		c.Close()
	}
	return told, mode
}

// general returns the mode of the policy's default.
func general(ctx context.Context, c *control.Client) review.Mode {
	queue, err := c.Watch(ctx, 0)
	i := slices.IndexFunc(queue.Rules, func(r review.Rule) bool { return r.Owner == "" && r.Pattern == "" })
	if err != nil || i < 0 {
		return review.Ask
	}
	return queue.Rules[i].Mode
}

func names(v control.Views) []string {
	var all []string
	for _, one := range []struct {
		there bool
		name  string
	}{{v.Editor, "in the editor"}, {v.Page, "on an open page"}, {v.Reviewer, "in pollux review"}} {
		if one.there {
			all = append(all, one.name)
		}
	}
	return all
}
