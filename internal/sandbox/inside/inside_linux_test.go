package inside

import (
	"bytes"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSelfCheck: the last step before a command notices that there is no sandbox.
func TestSelfCheck(t *testing.T) {
	runtime.LockOSThread() // check tries to make namespaces
	for name, s := range map[string]*stager{"no hosts": {}, "hosts": {Setup: Setup{Net: &Network{}}}, "reduced": {Setup: Setup{Reduced: true}}} {
		if err := s.check(); err == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// TestSteps: the steps have the one order that works, with and without namespaces.
func TestSteps(t *testing.T) {
	for _, test := range []struct {
		reduced bool
		want    string
	}{
		{false, "mounts network network system limits privileges landlock seccomp check"},
		{true, "system limits landlock seccomp check"},
	} {
		s := stager{Setup: Setup{Reduced: test.reduced}}
		var phases []string
		for _, step := range s.steps() {
			phases = append(phases, step.phase)
		}
		if got := strings.Join(phases, " "); got != test.want {
			t.Errorf("%v: %s", test.reduced, got)
		}
	}
}

// full returns a setup in which no field is zero.
func full() *Setup {
	return &Setup{Version: SetupVersion, Reduced: true, Private: "/p", Root: Root{Host: true, Write: true},
		Mounts: []Mount{{Show: ShowBind, Target: "/t", Source: "/s", Write: true, Data: "d\x00ü"}, {Show: ShowCopy, Files: []File{{Name: "n", Data: []byte{0, 255}, Executable: true}, {Name: "f/", Data: []byte{}}}}},
		Net:    &Network{Proxy: 3128, Ports: []int{80, 443}, Tap: []syscall.SockFilter{{Code: 0xffff, Jt: 255, Jf: 1, K: 0xffffffff}}},
		Path:   "/usr/bin/true", Args: []string{"true", ""}, Env: []string{"A=b"}, Dir: "/", PIDMax: true,
		Limits: Limits{CPU: time.Second, Memory: 1 << 40, Scratch: 1, FileSize: 2, Processes: 3, Files: 4},
		Canary: []string{"/x"}, Filter: []syscall.SockFilter{{Code: 6, K: 0x7fff0000}}, Fail: "mounts"}
}

// TestSetupTravels: a setup arrives as it was sent, with every field.
func TestSetupTravels(t *testing.T) {
	s := full()
	for v, i := reflect.ValueOf(s).Elem(), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s has no value in this test", v.Type().Field(i).Name)
		}
	}
	for _, s := range []*Setup{s, {}} {
		data, err := EncodeSetup(s)
		if err != nil {
			t.Fatal(err)
		}
		var got Setup
		if err := readMessage(bytes.NewReader(data), maxSetup, func(w *wire) { w.setup(&got) }); err != nil || !reflect.DeepEqual(&got, s) {
			t.Errorf("%v\n%+v\n%+v", err, &got, s)
		}
		for cut := range data { // wherever the message is cut off
			if readMessage(bytes.NewReader(data[:cut]), maxSetup, func(w *wire) { w.setup(&got) }) == nil {
				t.Errorf("%d of %d bytes are taken for the whole", cut, len(data))
			}
		}
	}
	if _, err := EncodeSetup(&Setup{Path: strings.Repeat("x", maxSetup)}); err == nil {
		t.Error("a setup that is too long is sent")
	}
}

// FuzzReport: any bytes from inside give a report or an error, and use bounded memory.
func FuzzReport(f *testing.F) {
	w := wire{data: make([]byte, 4)}
	w.report(&Report{Hello: true, Ready: true, Started: true, Phase: "mounts", Cause: "none", Errno: 2, Ended: true, Status: 256, Memory: 1, CPU: 2})
	data, err := w.message(maxReport)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{255, 255, 255, 255})
	f.Add(slices.Concat(data[:8], []byte{255, 255, 255, 255, 255, 255, 255, 127}, data[16:]))
	f.Fuzz(func(t *testing.T, data []byte) {
		var rep Report
		if err := ReadReport(bytes.NewReader(data), &rep); err != nil {
			return
		}
		again := wire{data: make([]byte, 4)}
		again.report(&rep)
		var same Report
		data, err := again.message(maxReport)
		if err == nil {
			err = ReadReport(bytes.NewReader(data), &same)
		}
		if err != nil || same != rep {
			t.Errorf("%v %+v %+v", err, rep, same)
		}
	})
}

// FuzzSetup: the same for setups.
func FuzzSetup(f *testing.F) {
	data, err := EncodeSetup(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		var s Setup
		_ = readMessage(bytes.NewReader(data), maxSetup, func(w *wire) { w.setup(&s) })
	})
}

// TestChildren: children lists the children of every thread.
func TestChildren(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if all := children(); !slices.Contains(all, cmd.Process.Pid) {
		t.Errorf("%v, without %d, of %d", all, cmd.Process.Pid, os.Getpid())
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
