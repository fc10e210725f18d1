package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If an extension breaks during a session, its caller is told, and nobody else is affected.
func TestExtensionsBreak(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": echo})
	w.extension("two", map[string]string{"second": echo})
	w.allow("one")
	w.allow("two")
	c := w.serve()
	c.hello()
	if got := c.tools(1); got != "describe_extension echo read_doc second" {
		t.Fatal(got)
	}
	id := 1
	call := func(tool, args string) message {
		t.Helper()
		id++
		c.call(id, tool, args)
		return c.answer(id)
	}
	fails := func(what string) {
		t.Helper()
		// The server may or may not have noticed yet, and may say that there is no such tool.
		if m := call("echo", `{"a":"x"}`); !m.Result.IsError || !strings.Contains(text(t, m), "one") && !strings.Contains(text(t, m), `no tool "echo"`) {
			t.Errorf("%s: %+v", what, m)
		}
		if got := text(t, call("second", `{"a":"y"}`)); got != "got --a y" {
			t.Errorf("%s: the other extension says %q", what, got)
		}
	}
	folder := filepath.Join(w.store.Dir(), "one")
	manifest := filepath.Join(folder, "gemini-extension.json")
	whole := w.read(".gemini/extensions/one/gemini-extension.json")
	if err := os.WriteFile(manifest, []byte(whole[:len(whole)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("half a manifest")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	fails("no manifest")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	fails("no folder")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails("a file for a folder")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	w.extension("one", map[string]string{"echo": echo})
	w.allow("one")
	if got := text(t, call("echo", `{"a":"again"}`)); got != "got --a again" {
		t.Errorf("as it was: %q", got)
	}
	if m := call("read_doc", `{"name":"one-doc"}`); m.Result.IsError {
		t.Errorf("its document: %+v", m)
	}
}

// A run that cannot be recorded does not happen (SPEC S-3). The server continues, and runs work again when there is
// space.
func TestNoRoomForTheLog(t *testing.T) {
	w := newWorld(t, nil)
	w.extension("one", map[string]string{"echo": "touch ran; echo done\n"})
	w.allow("one")
	c := w.serve()
	c.hello()
	log := filepath.Join(w.root, "state", "audit.jsonl")
	if err := os.Symlink("/dev/full", log); err != nil {
		t.Fatal(err)
	}
	c.call(1, "echo", `{"a":""}`)
	if m := c.answer(1); !m.Result.IsError || !strings.Contains(text(t, m), "log") {
		t.Errorf("%+v", m)
	}
	if _, err := os.Stat(filepath.Join(w.work, "ran")); err == nil {
		t.Error("it ran")
	}
	c.call(2, "describe_extension", `{}`)
	if m := c.answer(2); m.Result.IsError {
		t.Errorf("%+v", m)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	c.call(3, "echo", `{"a":""}`)
	if got := text(t, c.answer(3)); got != "done" {
		t.Errorf("with room again: %q", got)
	}
}

// An update replaces an extension while many clients call its tool. Each call is done completely by one version, or
// refused with a reason.
func TestCallsDuringUpdates(t *testing.T) {
	w := newWorld(t, nil)
	place := func(version string) string {
		w.extension("one", map[string]string{"echo": "cat \"$(dirname \"$0\")/word\"; cat \"$(dirname \"$0\")/word\"\n"})
		w.file(".gemini/extensions/one/tools/word", version+"\n")
		w.allow("one")
		kept := filepath.Join(w.root, version)
		if err := os.Rename(filepath.Join(w.store.Dir(), "one"), kept); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	old, fresh := place("old"), place("new")
	folder := filepath.Join(w.store.Dir(), "one")
	swap := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	swap(old, folder)
	w.allow("one")
	c := w.serve()
	c.hello()
	const calls = 40
	seen := map[string]int{}
	for i := range calls {
		c.call(100+i, "echo", fmt.Sprintf(`{"a":"%d"}`, i))
		if i%8 == 4 { // like an update: two renames
			swap(folder, old)
			swap(fresh, folder)
			old, fresh = fresh, old
		}
	}
	for range calls {
		m := c.next(func(m message) bool { id, ok := m.ID.(float64); return ok && id >= 100 })
		switch got := text(t, m); {
		case !m.Result.IsError && (got == "old\nold" || got == "new\nnew"):
			seen[got]++
		case m.Result.IsError && got != "":
			seen["refused"]++
		default:
			t.Errorf("%+v", m.Result)
		}
	}
	t.Log(seen)
	c.call(1, "describe_extension", `{}`)
	if m := c.answer(1); m.Error != nil {
		t.Errorf("%+v", m)
	}
}
