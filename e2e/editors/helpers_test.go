package editors

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/peers"
)

type agentFile = agent.File

func itoa(n int) string { return strconv.Itoa(n) }

// names lists the files of a context.
func names(files []agent.File) string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path)
	}
	return strings.Join(all, " ")
}

// serves says whether the companion of a discovery file answers.
func serves(file string) bool {
	data, err := os.ReadFile(file)
	var content struct{ Port int }
	if err != nil || json.Unmarshal(data, &content) != nil {
		return false
	}
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", content.Port))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// alive says whether a process runs: one that nobody has waited for does not.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// repository is the root of pollux's sources.
func repository(t *testing.T) string {
	t.Helper()
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
