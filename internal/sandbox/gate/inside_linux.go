package gate

import (
	"net"
	"os"
)

// ServeInside serves the listeners of a sandbox, in the order in which the first process inside opens them: names by
// UDP and by TCP, the proxy, one for each of ports, the tap. It closes the files. After an error the Gate must be closed.
func (g *Gate) ServeInside(files []*os.File, ports []int) error {
	last := len(files) - 1
	for i, f := range files {
		var err error
		switch i {
		case 0:
			var conn net.PacketConn
			if conn, err = net.FilePacketConn(f); err == nil {
				g.servePackets(conn)
			}
			f.Close()
		case last:
			g.serveTap(f, ports)
		default:
			var l net.Listener
			if l, err = net.FileListener(f); err == nil {
				g.serveListener(i, l)
			}
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) serveListener(i int, l net.Listener) {
	switch i {
	case 1:
		g.serve(l, g.serveNames)
	case 2:
		g.ServeProxy(l)
	default:
		g.serve(l, g.transparent)
	}
}
