//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// status shows all other companions in full beside one that does not answer.
func TestStatusBesideSilence(t *testing.T) {
	w := newWorld(t)
	l := w.serve()
	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	port := silent.Addr().(*net.TCPAddr).Port
	file := filepath.Join(filepath.Dir(l.DiscoveryFile), fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), port))
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"port":%d,"workspacePath":"/","authToken":"t"}`, port), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := w.command("status", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Port     int
		Health   string
		Sessions *int
	}
	if err := json.Unmarshal(out, &all); err != nil || len(all) != 2 {
		t.Fatalf("%s: %v", out, err)
	}
	for _, c := range all {
		switch {
		case c.Port == l.Port && (c.Health != "ok" || c.Sessions == nil), c.Port == port && c.Health != "no answer":
			t.Errorf("%s", out)
		}
	}
}
