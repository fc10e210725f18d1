package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

// An Outcome is the result of one block in a model's text.
type Outcome struct {
	Block prompt.Block
	// Name is the requested tool or document; "" if the block could not be understood.
	Name string
	// Status is ok, error, denied (the user has not agreed) or ignored (the block was code, a quotation or a result).
	Status string
	// Text is the answer without delimiters; Reply has them, ready for the model.
	Text, Reply string
}

// Respond carries out one block.
func (d *Dispatcher) Respond(ctx context.Context, b prompt.Block) Outcome {
	o := Outcome{Block: b}
	switch {
	case b.Inert != "":
		o.Status = "ignored"
		o.Text = fmt.Sprintf("a %s block was not acted on, because it stands %s; to have it done, write it in plain text, in a paragraph of its own", b.Kind, b.Inert)
		o.Reply = prompt.Result(string(b.Kind), o.Status, o.Text)
	case b.Err != nil:
		o.Status = "error"
		o.Text = fmt.Sprintf("the %s block cannot be understood: %v", b.Kind, b.Err)
		if b.Kind == prompt.ToolCode {
			o.Text += `; write one call between the tags, as in name(argument="value")`
		}
		o.Reply = prompt.Result(string(b.Kind), o.Status, o.Text)
	case b.Kind == prompt.ReadDoc:
		r := d.Read(b.Doc, 0)
		o.Name, o.Status, o.Text = b.Doc, r.Status(), strings.TrimRight(r.Text, "\n")
		o.Reply = r.delimited(b.Doc)
	default:
		o.call(ctx, d)
	}
	return o
}

func (o *Outcome) call(ctx context.Context, d *Dispatcher) {
	o.Name = o.Block.Call.Name
	args, err := json.Marshal(o.Block.Call.Map())
	var r Reply
	if err != nil {
		r = failed(o.Name, err)
	} else {
		r = d.Call(ctx, o.Name, args)
	}
	o.Status, o.Text = r.Status(), r.Text
	o.Reply = r.delimited(o.Name)
}

// delimited returns the reply with tags around it. A document already has tags.
func (r Reply) delimited(name string) string {
	if !r.Failed && prompt.IsDocument(r.Text) {
		return r.Text
	}
	return prompt.Result(name, r.Status(), r.Text)
}

// Status is ok, error, or denied when the user has not agreed.
func (r Reply) Status() string {
	switch {
	case r.Refused:
		return "denied"
	case r.Failed:
		return "error"
	}
	return "ok"
}
