package conform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/ownpipe"
)

// An Other is an agent besides Gemini CLI that the companion serves, with its own token.
type Other struct {
	Name, Label string
	Trials      []finding.Trial // of its wire; nil if it speaks as Gemini CLI does
	Door        finding.Door    // conform sets its Dir
}

// targetOf returns where a vector is played; ok is false for one that is not the companion's.
func (r *run) targetOf(a *contract.Archive) (target contract.Target, ok bool) {
	target = contract.Target{Addr: r.t.Addr, Token: r.t.Token, Dir: r.dir, Root: filepath.Dir(r.dir), Patience: r.t.Wait}
	if a.Agent() == "" {
		target.Opened = func(id string) { r.open = append(r.open, id) }
		return target, a.Player == contract.Wire
	}
	i := slices.IndexFunc(r.t.Others, func(o Other) bool { return o.Name == a.Agent() })
	if i < 0 {
		return target, false
	}
	d := r.t.Others[i].Door
	target.Token = d.Token
	if d.Port != 0 {
		target.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port))
	}
	if d.Socket != "" {
		target.Dial = func(ctx context.Context) (net.Conn, error) { return ownpipe.Dial(ctx, d.Socket) }
	}
	return target, true
}

// others tests what the companion says to other agents.
func (r *run) others() {
	for _, o := range r.t.Others {
		o.Door.Dir = r.dir
		trials := o.Trials
		if trials == nil {
			trials = r.ofGeminis(o)
		}
		for _, t := range trials {
			if r.ctx.Err() == nil && r.wanted(t.Name) {
				r.probe(probe{t.Name, t.About, func(r *run) error { return asProbe(t.Try(r.ctx, o.Door)) }})
				r.end()
			}
		}
	}
}

func asProbe(err error) error {
	if errors.Is(err, finding.ErrNoDiffs) {
		return skip(noDiffs)
	}
	return err
}

// ofGeminis returns the probes of Gemini CLI's wire for another agent that speaks it, with that agent's token.
func (r *run) ofGeminis(o Other) (trials []finding.Trial) {
	own := r.t.Token
	with := func(try func(*run) error) func(context.Context, finding.Door) error {
		return func(context.Context, finding.Door) error {
			r.t.Token = o.Door.Token
			defer func() { r.end(); r.t.Token = own }()
			return try(r)
		}
	}
	name := " (" + o.Label + ")"
	trials = append(trials, finding.Trial{Name: "Q-1/a token of its own" + name, About: "each agent has another token, which tells the companion who comes", Try: func(context.Context, finding.Door) error {
		if o.Door.Token == own {
			return errors.New("it has Gemini CLI's")
		}
		return nil
	}}, finding.Trial{Name: "Q-5/event stream" + name, About: "the event stream is not chunked: then its end is silent, and the CLI opens it anew", Try: with((*run).unchunked)})
	for _, p := range wireProbes() {
		if slices.Contains([]string{"T-5/initialized gets 202", "T-7/first context", "T-3/answers of two sessions", "F-1/both tools"}, p.name) {
			trials = append(trials, finding.Trial{Name: p.name + name, About: p.about, Try: with(p.try)})
		}
	}
	return trials
}

// unchunked opens an event stream and checks its form.
func (r *run) unchunked() error {
	id, _, err := r.rawSession()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.t.Addr+"/mcp", nil)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + r.t.Token, "Mcp-Session-Id": id, "Accept": "text/event-stream"} {
		req.Header.Set(name, value)
	}
	res, err := r.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("it is answered with %d", res.StatusCode)
	case len(res.TransferEncoding) > 0:
		return fmt.Errorf("its transfer encoding is %q", res.TransferEncoding)
	}
	return nil
}
