package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// maxStderr bounds how much of a tool's standard error a model gets; it gets the end.
const maxStderr = 4000

// Reply turns the return values of Run into one text for a model, of at most max bytes; failed says that it reports a
// failure. A successful answer is returned unchanged (JSON byte for byte), with nothing around it. Otherwise the text
// says what went wrong, who must act, and what to try next.
func Reply(result *Result, err error, max int) (text string, failed bool) {
	switch {
	case err == nil && result != nil:
		return answer(result, max), false
	case result != nil:
		return failure(result, err, max), true
	}
	text = err.Error()
	var refused *RefusedError
	var arguments *ArgumentError
	switch {
	case errors.As(err, &arguments):
		text += "\nCorrect the arguments and call the tool again."
	case errors.As(err, new(*UnknownToolError)), errors.As(err, new(*store.NotFoundError)):
	case errors.As(err, &refused) && refused.Why == BecauseConsent:
		text += "\nThis is the user's decision. Tell them; do not try to get the same result another way."
	case errors.Is(err, sandbox.ErrUnsupported), errors.Is(err, sandbox.ErrSetup), errors.Is(err, sandbox.ErrPolicy), errors.Is(err, sandbox.ErrCommand):
		text = "The tool was not run: " + text + "\nCalling it again will not help; tell the user."
	}
	return clip(text, max), true
}

// answer returns the text of a successful run.
func answer(r *Result, max int) string {
	if r.JSON != nil {
		if len(r.JSON) <= max {
			return string(r.JSON)
		}
		return clip(fmt.Sprintf("The answer has %d bytes, more than the %d that fit; it begins and ends like this:\n%s", len(r.JSON), max, r.JSON), max)
	}
	text := r.Text
	if r.NotJSON != "" {
		text = fmt.Sprintf("The tool should answer JSON, but %s. It printed:\n%s", r.NotJSON, text)
	}
	if strings.TrimSpace(text) == "" {
		text = "The tool ended well and printed nothing."
	}
	return clip(text+hints(r), max)
}

// failure returns the text of a failed run.
func failure(r *Result, err error, max int) string {
	var b strings.Builder
	b.WriteString(sentence(err.Error()))
	if r.Limit != nil {
		switch r.Limit.Kind {
		case "time":
			b.WriteString("\nAsk it for less at a time.")
		case "output":
			b.WriteString("\nAsk it for less, or for a part.")
		}
	}
	b.WriteString(hints(r))
	if text := strings.TrimSpace(r.Stderr); text != "" {
		fmt.Fprintf(&b, "\nIts standard error:\n%s", tail(text, maxStderr))
	}
	if text := strings.TrimSpace(r.Text); text != "" {
		fmt.Fprintf(&b, "\nIt had printed:\n%s", text)
	}
	return clip(b.String(), max)
}

// hints says what the sandbox denied the tool, which explains many failures.
func hints(r *Result) string {
	var b strings.Builder
	for i, d := range r.Denials {
		if i == 5 {
			fmt.Fprintf(&b, "\n%d more contacts were refused.", len(r.Denials)-i)
			break
		}
		fmt.Fprintf(&b, "\nThe sandbox refused it a contact with %s: %s.", d.Host, strings.TrimSuffix(d.Why, "."))
	}
	if text := MissedWords(r.Missed); text != "" {
		fmt.Fprintf(&b, "\n%s", sentence(text))
	}
	for i, d := range r.Files {
		if i == 5 {
			fmt.Fprintf(&b, "\n%d more files were kept from it.", len(r.Files)-i)
			break
		}
		fmt.Fprintf(&b, "\nThe sandbox refused it %s.", d.Words())
	}
	if slices.ContainsFunc(r.Files, func(d FileDenial) bool { return d.Needs != "" }) {
		b.WriteString(" Permissions are declared by the extension's author and agreed to by the user: tell the user; another way to the same file is not wanted.")
	}
	for i, q := range r.Quarantined {
		switch {
		case i == 5:
			fmt.Fprintf(&b, "\n%d more protected names were touched.", len(r.Quarantined)-i)
			return b.String()
		case q.Moved != "":
			fmt.Fprintf(&b, "\nIt touched the protected name %q, which was undone.", q.Path)
		default:
			fmt.Fprintf(&b, "\nProtected name %q: %s.", q.Path, strings.TrimSuffix(q.Err, "."))
		}
	}
	return b.String()
}

// MissedWords says what a tool seems to have missed, and which permission would give it, as a sentence without a final
// period; "" for nothing.
func MissedWords(m sandbox.Missed) string {
	switch m {
	case sandbox.MissedSocket:
		return "it seems to have tried a unix socket with a name, which no permission allows"
	case sandbox.MissedNetwork:
		return "it seems to need the network: the permission network.allowedHosts names no host, and so it gets no sockets and no names"
	}
	return ""
}

func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// tail returns the end of a text, beginning at a line if possible.
func tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = words.ClipEnd(text, n)
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		text = rest
	}
	return "…\n" + strings.ToValidUTF8(text, "")
}

// clip shortens a text to n bytes: its first quarter and its end, with a note about the part between.
func clip(text string, n int) string {
	if n <= 0 || len(text) <= n {
		return text
	}
	note := fmt.Sprintf("\n… %d bytes left out …\n", len(text)-n)
	room := max(0, n-len(note)-16)
	return words.Clip(words.Clip(text, room/4)+note+words.ClipEnd(text, room-room/4), n)
}
