package client

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// OfProcess returns a running process's environment, folder and place in the process tree.
func TestOfProcess(t *testing.T) {
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	cmd := exec.Command("sleep", "60")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir + "/tmp", "TERM_PROGRAM=vscode"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	w, lacks, err := OfProcess(cmd.Process.Pid)
	// Start returns a moment before the system shows the new program's environment.
	for end := time.Now().Add(30 * time.Second); (err != nil || w.Getenv("TERM_PROGRAM") == "") && time.Now().Before(end); time.Sleep(time.Millisecond) {
		w, lacks, err = OfProcess(cmd.Process.Pid)
	}
	if err != nil || len(lacks) > 0 || w.Dir != dir || w.Folder() != dir+"/tmp/gemini/ide" || w.Getenv("TERM_PROGRAM") != "vscode" || w.PID != cmd.Process.Pid {
		t.Errorf("%+v, %q, %v", w, lacks, err)
	}
	if c := Choose(w); c.IDE == nil || c.IDE.Name != "vscodefork" && c.IDE.Name != "vscode" || c.Taken != -1 {
		t.Errorf("%+v", c)
	}
	if _, _, err := OfProcess(os.Getpid() + 1<<22); err == nil {
		t.Error("no process has a world")
	}
}
