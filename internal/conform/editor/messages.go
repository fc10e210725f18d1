package editor

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pollux-companion/pollux/internal/rpc"
)

func messageChecks() []check {
	return []check{
		{"EP-2/unknown request", "a request that the plugin does not know is answered with -32601", func(p *play) error { return p.link.lives() }},
		{"EP-2/unknown notification", "a notification that it does not know is ignored", (*play).unknownNotification},
		{"EP-2/unknown members", "members that it does not know are ignored", (*play).unknownMembers},
		{"EP-2/ids", "an answer has the id of its request, also when that is a string", (*play).stringID},
		{"EP-2/pieces", "a message may come in pieces, and two may come at once", (*play).pieces},
		{"EP-2/malformed", "a message that is no JSON is survived", (*play).malformed},
		{"EP-2/huge", "a message of 8 MB is taken", (*play).huge},
	}
}

func (p *play) unknownNotification() error {
	if err := p.link.notify("pollux/didLearnToFly", map[string]any{"height": 3}); err != nil {
		return err
	}
	if err := p.link.notify("$/pollux", nil); err != nil {
		return err
	}
	return p.link.lives()
}

func (p *play) unknownMembers() error {
	status := map[string]any{"sessions": []any{map[string]any{"name": "Gemini", "version": "1", "id": "s1", "colour": []int{1}}},
		"pendingDiffs": 0, "context": "on", "agents": "Gemini 1", "untold": "", "sharing": "", "weather": map[string]any{"rain": nil}}
	if err := p.link.notify("pollux/didChangeStatus", status); err != nil {
		return err
	}
	return p.link.lives()
}

func (p *play) stringID() error {
	mark := p.link.mark()
	const id = `"conform-1"`
	if err := p.link.write(p.link.frame([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"pollux/conform","params":{}}`))); err != nil {
		return err
	}
	_, err := p.link.answerTo(id, mark, "a request with the id "+id)
	if code(err) == rpc.CodeNoMethod {
		return nil
	}
	return err
}

// pieces sends three requests in such parts that no message and no character comes whole.
func (p *play) pieces() error {
	var all []byte
	var ids []string
	mark := p.link.mark()
	for range 3 {
		ids = append(ids, fmt.Sprint(p.link.id()))
		all = append(all, p.link.frame(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"pollux/conform","params":{"text":"%s"}}`, ids[len(ids)-1], strings.Repeat("ä😀", 2000)))...)
	}
	for _, part := range [][]byte{all[:1], all[1:25], all[25:1001], all[1001 : len(all)-3], all[len(all)-3:]} {
		if err := p.link.write(bytes.Clone(part)); err != nil {
			return err
		}
		p.pause(silence / 20)
	}
	for _, id := range ids {
		if _, err := p.link.answerTo(id, mark, "a request that came in pieces"); code(err) != rpc.CodeNoMethod {
			return errors.Join(errors.New("a request that came in pieces is not answered with -32601"), err)
		}
	}
	return nil
}

func (p *play) malformed() error {
	for _, body := range []string{`{"jsonrpc":"2.0","method":`, `{"jsonrpc":"2.0","method":"pollux/didChangeStatus","params":"none"}`, `[]`, `{"jsonrpc":"2.0","id":"nobody asked","result":5}`} {
		if err := p.link.write(p.link.frame([]byte(body))); err != nil {
			return err
		}
		if err := p.link.lives(); err != nil {
			return fmt.Errorf("after %s: %w", body, err)
		}
	}
	return nil
}

func (p *play) huge() error {
	big := strings.Repeat("large ", 8<<20/6)
	if err := p.link.notify("pollux/didLearnToFly", map[string]any{"text": big}); err != nil {
		return err
	}
	return p.link.lives()
}
