package companion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/usertest"
)

// SPEC A-5: no listener of a companion's answers another user, whatever they ask for and bring.
func TestOtherUserA5(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	page, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	agent := fmt.Sprintf("127.0.0.1:%d", c.Info().Port)
	token := c.Connection().Token
	for _, path := range []string{filepath.Dir(filepath.Dir(c.socket)), filepath.Dir(c.socket), c.socket} { // what protects it first
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(addr, request string) string {
		network := "tcp4"
		if filepath.IsAbs(addr) {
			network = "unix"
		}
		conn, err := net.Dial(network, addr)
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", request, addr, addr, token)
		b, _ := io.ReadAll(conn)
		return string(b)
	}
	for _, try := range []struct{ addr, request string }{
		{agent, "GET /keep-alive"}, {agent, "POST /mcp"}, {agent, "GET /stream"}, {agent, "OPTIONS *"},
		{u.Host, "GET /"}, {u.Host, "GET /ws"}, {u.Host, "POST /session"}, {c.socket, "POST /mcp"},
	} {
		if own := ask(try.addr, try.request); own == "" {
			t.Errorf("%s: this user is told nothing", try.request)
		}
		var answer string
		if !usertest.Do(t, func() { answer = ask(try.addr, try.request) }) {
			return
		}
		if answer != "" {
			t.Errorf("%s: another user is told %q", try.request, answer)
		}
	}
}

// Where users are not told apart, the companion works, and says so.
func TestUsersTrouble(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	if got := c.usersTrouble(nil); got != nil {
		t.Errorf("all is well, and it says %+v", got)
	}
	if got := c.usersTrouble(errors.New("no table")); got == nil || got.ID != "users" || got.What == "" || got.Why == "" || got.Do == "" {
		t.Errorf("%+v", got)
	}
	c.Stop(t.Context())
	o.Settings.AdmitOtherUsers = true
	c = start(t, o)
	if got := (backend{c}).Status().Troubles; len(got) != 1 || got[0].ID != "users" {
		t.Errorf("%+v", got)
	}
	var answer error
	usertest.Do(t, func() {
		conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", c.Info().Port))
		if err != nil {
			answer = err
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		_, answer = conn.Read(make([]byte, 1))
	})
	if answer != nil {
		t.Errorf("admitOtherUsers: %v", answer)
	}
}

// SPEC: the page's token of an older pollux is not taken over, and the rest of its record is.
func TestOldRecordA5(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	port := c.Info().Port
	c.Stop(t.Context())
	records, _ := filepath.Glob(filepath.Join(o.Dirs.State, "resume", "*.json"))
	if len(records) != 1 {
		t.Fatalf("%v", records)
	}
	data, _ := os.ReadFile(records[0])
	var record map[string]any
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	delete(record, "pageKeys")
	record["pageToken"] = "old"
	data, _ = json.Marshal(record)
	if err := os.WriteFile(records[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	c = start(t, o)
	if !c.Info().Resumed || c.Info().Port != port || len(c.page.Keys()) != 1 {
		t.Errorf("resumed %v, %d keys", c.Info().Resumed, len(c.page.Keys()))
	}
	if data, _ := json.Marshal(c.record); len(c.record.PageKeys) != 1 || bytes.Contains(data, []byte(`"old"`)) {
		t.Errorf("%s", data)
	}
	c.Stop(t.Context())
	if c = start(t, o); len(c.page.Keys()) != 2 {
		t.Errorf("%d keys after another start", len(c.page.Keys()))
	}
}
