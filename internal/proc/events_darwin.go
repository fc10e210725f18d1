package proc

import (
	"context"
	"errors"
	"net/netip"
)

var errNoEvents = errors.New("the system does not tell when a process ends")

func waitEvent(context.Context, int) error { return errNoEvents }

func peer(client, server netip.AddrPort) (int, bool) { return 0, false }
