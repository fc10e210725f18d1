package control

import (
	"context"
	"errors"
	"os"

	"github.com/creachadair/jrpc2/handler"
)

// Keeping is how the door of a companion goes on to the next one (SPEC L-4). It is refused to a process below an agent
// (ErrFromAgent).
type Keeping interface {
	// HandOver gives up the door of a keeper, which ends when over is called. The file is a duplicate of its listening socket, the caller's to
	// close; nil where the system hands none on. ErrNoKeeper from any other companion.
	HandOver() (h Handing, door *os.File, over func(), err error)
	// Stop ends a companion that has no editor of its own, when over is called.
	Stop() (over func(), err error)
}

// A Handing says what a companion takes over: the record of the sessions, by the names that it was made with.
type Handing struct {
	Editor string   `json:"editor"` // ideInfo's name
	Roots  []string `json:"roots"`  // absolute and canonical
	Port   int      `json:"port"`
}

// ErrNoKeeper: a companion that has its editor is not taken over.
var ErrNoKeeper = errors.New("this companion is no keeper; its editor runs")

type takeParams struct {
	InAgent bool `json:"inAgent,omitempty"`
}

// TakeOver takes the door of a keeper. The file is its listening socket, the caller's to close; nil where the port must be opened
// anew. The keeper gives its record up within a second.
func (c *Client) TakeOver(ctx context.Context) (Handing, *os.File, error) {
	var h Handing
	own, err := join(ctx, c.path, true)
	if err != nil {
		return h, nil, err
	}
	defer own.Close() // the keeper waits for that
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

// keeping are the methods of Keeping.
func (p *peer) keeping() handler.Map {
	return handler.Map{
		methodTakeOver: method(func(ctx context.Context, in takeParams) (Handing, error) {
			if err := p.person(ctx, in.InAgent); err != nil {
				return Handing{}, err
			}
			h, door, over, err := p.b.HandOver()
			if err == nil {
				p.over.Store(&over) // the caller has it when the connection ends
			}
			if door != nil {
				p.out.give(door) // with the answer
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

// person is trusted without the agents whose process is not known: who takes a door over has decided nothing yet, and decides by
// the rules of every companion.
func (p *peer) person(ctx context.Context, inAgent bool) error {
	if inAgent {
		return ErrFromAgent
	}
	agents := p.known(ctx)
	agents.Unknown = nil
	return agents.MayDecide(p.pid)
}
