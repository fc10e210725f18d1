package control

import (
	"context"
	"errors"
	"os"

	"github.com/creachadair/jrpc2/handler"
)

// keeping hands a companion's door (its listening socket and sessions) to the next companion (SPEC L-4). A process below an agent is
// refused (ErrFromAgent).
type keeping interface {
	// HandOver gives up the door of a keeper; the keeper ends when over is called. The file is a duplicate of its listening socket, which the
	// caller closes; nil where the system cannot pass one on. Any companion but a keeper returns ErrNoKeeper.
	HandOver() (h Handing, door *os.File, over func(), err error)
	// Stop ends a companion that has no editor of its own; it ends when over is called.
	Stop() (over func(), err error)
}

// A Handing names the record of the sessions that a companion takes over, by the values that the record was made with.
type Handing struct {
	Editor string   `json:"editor"` // ideInfo's name
	Roots  []string `json:"roots"`  // absolute and canonical
	Port   int      `json:"port"`
}

// ErrNoKeeper: the companion still has its editor, and cannot be taken over.
var ErrNoKeeper = errors.New("this companion is no keeper; its editor runs")

type takeParams struct {
	InAgent bool `json:"inAgent,omitempty"`
}

// TakeOver takes over the door of a keeper. The file is its listening socket, which the caller closes; nil where the port must be opened
// anew. The keeper releases its record within a second.
func (c *Client) TakeOver(ctx context.Context) (Handing, *os.File, error) {
	var h Handing
	own, err := join(ctx, c.path, true)
	if err != nil {
		return h, nil, err
	}
	defer own.Close() // the keeper waits until this connection closes
	if err := own.call(ctx, methodTakeOver, takeParams{inAgent()}, &h); err != nil {
		return h, nil, err
	}
	door, err := own.conn.taken()
	return h, door, err
}

// Stop ends a companion that has no editor of its own, after Close.
func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, methodStop, takeParams{inAgent()}, &empty{})
}

// keeping are the methods of keeping.
func (p *peer) keeping() handler.Map {
	return handler.Map{
		methodTakeOver: method(func(ctx context.Context, in takeParams) (Handing, error) {
			if err := p.person(ctx, in.InAgent); err != nil {
				return Handing{}, err
			}
			h, door, over, err := p.b.HandOver()
			if err == nil {
				p.over.Store(&over) // called when the connection ends: the caller has the answer then
			}
			if door != nil {
				p.out.give(door) // leaves with the answer
			}
			return h, err
		}),
		methodStop: method(func(ctx context.Context, in takeParams) (empty, error) {
			if err := p.person(ctx, in.InAgent); err != nil {
				return empty{}, err
			}
			over, err := p.b.Stop()
			if err == nil {
				p.over.Store(&over)
			}
			return empty{}, err
		}),
	}
}

// person refuses agents, but not because of agents whose process is not known: taking a door over decides nothing yet, and later
// decisions follow the rules of every companion.
func (p *peer) person(ctx context.Context, inAgent bool) error {
	if inAgent {
		return ErrFromAgent
	}
	agents := p.known(ctx)
	agents.Unknown = nil
	return p.judge(agents)
}
