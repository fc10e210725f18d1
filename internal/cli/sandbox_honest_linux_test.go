package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/peers"
)

// Honest programs in a writable workspace, without a network (docs/sandbox.md, "Honest programs").
func TestHonestPrograms(t *testing.T) {
	pace.NotRaced(t, "each command is a process of its own, and shares its memory with no other")
	peers.Need(t, peers.Node)
	w := newWorld(t)
	for name, text := range map[string]string{
		"package.json": `{"name":"n","version":"1.0.0","scripts":{"build":"node build.js"}}`,
		"build.js":     `require('fs').writeFileSync('built', 'js')`,
		"pool.py": "import multiprocessing as mp\ndef f(x): return x*x\nif __name__ == '__main__':\n" +
			"    with mp.get_context('spawn').Pool(2) as p: assert p.map(f, [1, 2, 3]) == [1, 4, 9]\n",
		"threads.py": "import threading\nb = threading.Barrier(400)\nt = [threading.Thread(target=b.wait, args=(30,)) for _ in range(400)]\n" +
			"[x.start() for x in t]\n[x.join() for x in t]\nassert not b.broken\n",
		"forkserver.py": "import multiprocessing as mp\nif __name__ == '__main__':\n    with mp.get_context('forkserver').Pool(2) as p: p.map(abs, [1])\n",
		"manager.py": "import sys\nfrom multiprocessing.managers import SyncManager\nif __name__ == '__main__':\n" +
			"    with SyncManager(('127.0.0.1', 0) if sys.argv[1:] else None) as m: assert m.dict(a=1)['a'] == 1\n",
		"loopback.py": "import http.server, threading, urllib.request\n" +
			"s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n" +
			"threading.Thread(target=s.serve_forever, daemon=True).start()\n" +
			"assert urllib.request.urlopen('http://127.0.0.1:%d/loopback.py' % s.server_port).status == 200\n",
	} {
		if err := os.WriteFile(filepath.Join(w.project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string // on standard error
	}{
		"npm script":                 {[]string{"--", "npm", "run", "-s", "build"}, 0, ""},
		"virtual environment":        {[]string{"--", "python3", "-m", "venv", "--without-pip", "v"}, 0, ""},
		"pool of spawned processes":  {[]string{"--", "python3", "pool.py"}, 0, ""},
		"loopback without a network": {[]string{"--", "python3", "loopback.py"}, 1, "it seems to need the network; --allow-host HOST"},
		"loopback, beside a host":    {[]string{"--allow-host", "https://example.com", "--", "python3", "loopback.py"}, 0, ""},
		"loopback, which is named":   {[]string{"--allow-host", "http://localhost:9", "--", "python3", "loopback.py"}, 1, ""}, // by the proxy, to this machine
		"forkserver":                 {[]string{"--", "python3", "forkserver.py"}, 1, `multiprocessing.set_start_method("spawn")`},
		"forkserver, beside a host":  {[]string{"--allow-host", "https://example.com", "--", "python3", "forkserver.py"}, 1, `multiprocessing.set_start_method("spawn")`},
		"manager":                    {[]string{"--", "python3", "manager.py"}, 1, `SyncManager(("127.0.0.1", 0)) needs --allow-host`},
		"manager on loopback":        {[]string{"--allow-host", "https://example.com", "--", "python3", "manager.py", "tcp"}, 0, ""},
		"a name without a network":   {[]string{"--", "python3", "-c", "import socket; socket.getaddrinfo('example.com', 80)"}, 1, "it seems to need the network"},
		"a failure of another kind":  {[]string{"--", "python3", "-c", "open('/etc/shadow')"}, 1, ""},
		"400 threads":                {[]string{"--", "python3", "threads.py"}, 0, ""},
		// Without Java there is nothing to compile.
		"javac":                          {[]string{"--", "sh", "-c", "command -v javac || exit 0; echo 'class A { public static void main(String[] a) {} }' >A.java && javac A.java && java A"}, 0, ""},
		"a program by its relative path": {[]string{"--", "sh", "-c", "printf '#!/bin/sh\\nexit 7\\n' >x; chmod +x x; ./x"}, 7, ""},
	} {
		out, code := combined(w, append([]string{"sandbox", "--write", "workspace"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.says) || c.says == "" && strings.Contains(out, "it seems") {
			t.Errorf("%s: exit code %d, want %d; it is to say %q\n%s", name, code, c.code, c.says, out)
		}
	}
}
