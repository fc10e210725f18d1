package lockfile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
)

// TryWithin bounds one trial.
const TryWithin = 5 * time.Second

// A Session is a connection of a trial's.
type Session interface {
	Close()
	// Tools returns the names of the tools that are offered.
	Tools(ctx context.Context) ([]string, error)
}

// Joined makes a trial of what is tried in a session.
func Joined[S Session](dial func(context.Context, finding.Door) (S, error), try func(context.Context, finding.Door, S) error) func(context.Context, finding.Door) error {
	return func(ctx context.Context, d finding.Door) error {
		ctx, cancel := context.WithTimeout(ctx, TryWithin)
		defer cancel()
		s, err := dial(ctx, d)
		if err != nil {
			return err
		}
		defer s.Close()
		return try(ctx, d, s)
	}
}

// OtherToken makes the trial that no token but the lock's opens a session.
func OtherToken[S Session](dial func(context.Context, finding.Door) (S, error)) func(context.Context, finding.Door) error {
	return func(ctx context.Context, d finding.Door) error {
		ctx, cancel := context.WithTimeout(ctx, TryWithin)
		defer cancel()
		own := d.Token
		for _, token := range []string{"", "x", own + "x", strings.ToUpper(own)} {
			if token == own {
				continue
			}
			d.Token = token
			s, err := dial(ctx, d)
			if err == nil {
				s.Close()
				return fmt.Errorf("a session opened with a token of %d bytes that is not the lock's", len(token))
			}
			if !errors.Is(err, ErrToken) {
				return fmt.Errorf("instead of 401: %w", err)
			}
		}
		return nil
	}
}

// Offers returns the tools that a session offers, and fails when one of these is not among them.
func Offers(ctx context.Context, s Session, tools iter.Seq[string]) (names []string, err error) {
	names, err = s.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for name := range tools {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s is missing of %s", name, strings.Join(names, ", "))
		}
	}
	return names, nil
}
