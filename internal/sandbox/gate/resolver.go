package gate

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// servePackets answers DNS questions over UDP.
func (g *Gate) servePackets(conn net.PacketConn) {
	context.AfterFunc(g.ctx, func() { conn.Close() })
	g.wg.Go(func() {
		defer conn.Close()
		buf := make([]byte, 4<<10)
		for {
			n, from, err := conn.ReadFrom(buf)
			if errors.Is(err, net.ErrClosed) || g.ctx.Err() != nil {
				return
			}
			if err != nil {
				continue
			}
			if answer := g.resolve(buf[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from) // the program asks again after a lost answer
			}
		}
	})
}

// serveNames answers DNS questions over TCP. Each has its length in front.
func (g *Gate) serveNames(conn net.Conn) {
	for {
		_ = conn.SetDeadline(time.Now().Add(firstBytes)) // a TCP connection has deadlines
		head := make([]byte, 2)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(head))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		answer := g.resolve(question)
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// resolve answers one DNS message, or returns nil if it is not a question. An allowed name gets an address inside the
// sandbox, at which the transparent entrance listens. No question leaves the machine, so names cannot carry data out.
func (g *Gate) resolve(message []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil || head.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name, ok := hostName(q.Name.String())
	reply := dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	allowed := ok && g.knows(name)
	if !allowed {
		reply.RCode = dnsmessage.RCodeNameError
		if !strings.HasSuffix(name, ".arpa") { // libraries look addresses up backwards by themselves; that is no contact
			g.deny(cmp.Or(name, q.Name.String()), 0, whyNot)
		}
	}
	b := dnsmessage.NewBuilder(nil, reply)
	if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
		return nil
	}
	if allowed && q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
		if addr, ok := g.address(name); ok {
			if b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}, dnsmessage.AResource{A: addr.As4()}) != nil {
				return nil
			}
		}
	}
	answer, err := b.Finish()
	if err != nil {
		return nil
	}
	return answer
}

// address returns the address of a name, the same throughout a run, from 127.1.0.1 upwards. The address is how transparent
// knows later which name a program meant, so no two names share one. It is false after maxNames names: a wildcard
// allows any number.
func (g *Gate) address(name string) (netip.Addr, bool) {
	if name == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if addr, ok := g.addrs[name]; ok {
		return addr, true
	}
	n := len(g.addrs) + 1
	if n > maxNames {
		return netip.Addr{}, false
	}
	addr := netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})
	g.addrs[name], g.names[addr] = addr, name
	return addr, true
}
