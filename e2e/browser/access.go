package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// An Accessible is one node of the tree that a screen reader reads.
type Accessible struct {
	Role, Name string
}

// AccessibilityTree lists the nodes that a screen reader meets, in document order.
func (p *Page) AccessibilityTree() []Accessible {
	p.t.Helper()
	var nodes []*accessibility.Node
	p.do("accessibility tree", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		res, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		nodes = res.Nodes
		return err
	}))
	var all []Accessible
	for _, n := range nodes {
		if !n.Ignored {
			all = append(all, Accessible{Role: said(n.Role), Name: said(n.Name)})
		}
	}
	return all
}

func said(v *accessibility.Value) string {
	var s string
	if v == nil || json.Unmarshal(v.Value, &s) != nil {
		return ""
	}
	return s
}

// A Faint is a piece of visible text with too little contrast for WCAG 2.2 AA.
type Faint struct {
	Text, Element string
	Ratio, Needed float64
}

func (f Faint) String() string {
	return fmt.Sprintf("%q in %s: %.2f, needs %.1f", f.Text, f.Element, f.Ratio, f.Needed)
}

//go:embed contrast.js
var contrastScript string

// Contrast finds the text on the page that is too faint, and says how many
// pieces of text it measured, so that an empty page proves nothing.
func (p *Page) Contrast() (faint []Faint, measured int) {
	p.t.Helper()
	result := Eval[struct {
		Faint    []Faint
		Measured int
	}](p, contrastScript)
	return result.Faint, result.Measured
}
