// Package serve holds the commands that start companions: for a folder, around an agent, behind an editor, and as the
// keeper of connected CLIs. It also has the reviewer, which shows proposals in a terminal.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/reach"
	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/settings"
	"github.com/pollux-companion/pollux/internal/words"
)

// serveFlags are the flags that serve and run share.
type serveFlags struct {
	noOpen         bool
	allowWriteFile bool
	container      string
	port           int
}

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.noOpen, "no-open", false, "do not open the editor page in the browser")
	flags.BoolVar(&f.allowWriteFile, "allow-write-file", false, "let agents write files of the workspace by POST /write-file")
	flags.StringVar(&f.container, "container", "", "also serve CLIs in containers, on this `ADDRESS` of the machine's (such as 172.17.0.1)")
	flags.IntVar(&f.port, "port", 0, "listen on this `PORT` instead of one that the system chooses")
}

// optionsOf merges the flags over the settings.
func optionsOf(con *console.Console, f *serveFlags, roots []string) (companion.Options, error) {
	set := con.Settings
	set.AllowWriteFile = set.AllowWriteFile || f.allowWriteFile
	if f.container != "" {
		set.ContainerAddress = f.container
	}
	if err := settings.CheckContainerAddress(set.ContainerAddress); err != nil {
		return companion.Options{}, console.Usage(err)
	}
	if f.port < 0 || f.port > 65535 {
		return companion.Options{}, console.Usage(fmt.Errorf("%d is not a port; use one from 1 to 65535, or leave --port out", f.port))
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for i, root := range roots {
		path, err := console.Here(root)
		if err != nil {
			return companion.Options{}, err
		}
		if err := checkRoot(root, path); err != nil {
			return companion.Options{}, err
		}
		roots[i] = path
	}
	o := base(con)
	o.Settings, o.Roots, o.Port = set, roots, f.port
	return o, nil
}

// base returns the options that every companion shares.
func base(con *console.Console) companion.Options {
	return companion.Options{
		Dirs: con.Dirs, Settings: con.Settings, Version: console.Version(), Log: con.Log,
		NewPage: func(o companion.PageOptions) companion.Page { return web.New(o) },
	}
}

// start starts the companion of serve and run, and prints its warnings.
func start(ctx context.Context, con *console.Console, o companion.Options) (*companion.Companion, error) {
	noteState(con)
	c, err := companion.Start(ctx, o)
	if err == nil {
		noteOthers(con, c)
	}
	return c, err
}

// checkRoot refuses a path that is not a folder, and an unreadable folder, which would look empty. name is the user's
// name for it.
func checkRoot(name, path string) error {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return console.Usage(fmt.Errorf("%q is not a folder; name the folder of your project", name))
	}
	dir, err := os.Open(path)
	if err == nil {
		_, err = dir.Readdirnames(1)
		dir.Close()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the folder %q cannot be read (%w); check its permissions, or name another", path, safefile.Cause(err))
	}
	return nil
}

// Serve makes pollux serve.
func Serve(con *console.Console) *cobra.Command {
	var f serveFlags
	var asJSON, withParent bool
	cmd := &cobra.Command{
		Use:   "serve [DIR…]",
		Short: "Start a companion for these folders, with its editor page",
		Long: `Starts a companion for the current folder, or for the folders given, and its
editor page in the browser. A Gemini CLI that is started in one of the folders
connects by itself. Ctrl-C stops the companion; a start within ten minutes
takes over from it, so that running CLIs stay connected.

Several companions may serve one folder. Each has its own port and page, and
names the others.`,
		Example: `  pollux serve                        the current folder
  pollux serve ~/app ~/lib            two folders, as one workspace
  pollux serve --no-open --json       for scripts: one line when it is ready`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := optionsOf(con, &f, args)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), con, o, &f, asJSON, withParent)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON when the companion is ready, and nothing else")
	cmd.Flags().BoolVar(&withParent, "with-parent", false, "stop when the process that started pollux ends")
	return cmd
}

// serve runs a companion until a signal, its parent's end or its own failure.
func serve(ctx context.Context, con *console.Console, o companion.Options, f *serveFlags, asJSON, withParent bool) error {
	parent := os.Getppid()
	sigs := console.CatchSignals()
	defer sigs.Stop()
	o.Keep = keeperOf(con)
	c, err := start(ctx, con, o)
	if err != nil {
		return err
	}
	if silent := c.Silent(); silent != nil {
		fmt.Fprintf(con.Err, "pollux: whether this folder is already served is not known, because %v\n", silent)
	}
	if asJSON {
		err = printReady(con, c)
	} else {
		err = printServing(con, c)
	}
	clean, _ := openPage(ctx, con, c, f)
	defer clean()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orphaned := make(chan struct{})
	if withParent {
		go func() {
			if proc.WaitParent(ctx, parent) == nil {
				close(orphaned)
			}
		}()
	}
	stop := c.Stop
	if err == nil {
		select {
		case sig := <-sigs.End:
			if sig == syscall.SIGHUP { // the terminal is gone, but nobody asked pollux to end
				stop = c.Leave
			}
		case <-orphaned:
		case err = <-c.Failed():
		}
	}
	// Ignore further signals: Stop takes at most a second, and the next start cleans up anything left.
	return ended(stop(ctx), err)
}

// noteState warns in advance if the state folder is unusable. A companion without it is better than none.
func noteState(con *console.Console) {
	if err := safefile.PrivateDir(con.Dirs.State); err != nil {
		fmt.Fprintf(con.Err, "pollux: there will be no log, no history, and no resuming after a restart: %v\n", err)
	}
}

// noteOthers says who else serves the same folder; it joins nothing (SPEC §11.6).
func noteOthers(con *console.Console, c *companion.Companion) {
	others := c.Serving()
	for _, o := range others {
		fmt.Fprintf(con.Err, "pollux: process %d already serves %s\n", o.PID, console.Folders(o.Roots))
	}
	if len(others) > 0 {
		fmt.Fprintln(con.Err, "pollux: this is one more companion, with a port and a page of its own. A CLI that is started here takes the newest, or the one that `pollux env` gave its terminal. To use the one before alone, stop this one and run: pollux page")
	}
}

func printServing(con *console.Console, c *companion.Companion) error {
	info := c.Info()
	address, err := c.PageAddress()
	if err != nil {
		return err
	}
	out := con.Out
	fmt.Fprintf(out, "%s %s\n", console.Paint(out, console.Bold, "Pollux serves"), console.Paint(out, console.Bold, console.Folders(info.Roots)))
	fmt.Fprintf(out, "  editor page   %s\n", address)
	fmt.Fprintf(out, "                (good once; `pollux page` prints a fresh address)\n")
	if !info.Hidden {
		fmt.Fprintf(out, "  Gemini CLI    start gemini in this folder, in any terminal: it connects by itself once IDE mode is on\n")
		fmt.Fprintf(out, "                to switch that on, once:  pollux setup\n")
		fmt.Fprintf(out, "                where it does not:  %s\n", reach.EvalHint(reach.ShellHere()))
	} else {
		fmt.Fprintf(out, "  Gemini CLI    cannot find it by itself; `pollux status` says why. In the terminal where you start gemini, first:\n")
		fmt.Fprintf(out, "                %s\n", reach.EvalHint(reach.ShellHere()))
	}
	fmt.Fprintf(out, "  listening on  127.0.0.1:%d\n", info.Port)
	if info.Resumed {
		fmt.Fprintf(out, "  resumed       CLIs of the companion before this one stay connected\n")
	}
	if path, ok := elsewhere(); ok {
		fmt.Fprintf(out, "  not in PATH   where it says pollux, say %s\n", path)
	}
	fmt.Fprintf(out, "Ctrl-C stops it.\n")
	return nil // a closed standard output does not stop serving
}

// elsewhere returns this program's path if a shell would not find it by name: it was started by go run, or from its
// build folder.
func elsewhere() (path string, ok bool) {
	if _, err := exec.LookPath("pollux"); err == nil {
		return "", false
	}
	path, err := os.Executable()
	return words.Printable(path), err == nil
}

// ready is the output line of serve --json.
type ready struct {
	PID           int      `json:"pid"`
	Port          int      `json:"port"`
	Workspace     []string `json:"workspace"`
	DiscoveryFile string   `json:"discoveryFile"`
	Page          string   `json:"page"`
	Resumed       bool     `json:"resumed"`
	AlsoServedBy  []int    `json:"alsoServedBy"`
}

func printReady(con *console.Console, c *companion.Companion) error {
	info := c.Info()
	address, err := c.PageAddress()
	if err != nil {
		return err
	}
	r := ready{
		PID: info.PID, Port: info.Port, Workspace: info.Roots, DiscoveryFile: info.DiscoveryFile,
		Page: address, Resumed: info.Resumed, AlsoServedBy: []int{},
	}
	for _, o := range c.Serving() {
		r.AlsoServedBy = append(r.AlsoServedBy, o.PID)
	}
	return json.NewEncoder(con.Out).Encode(r)
}

// openPage opens the page in a browser, in the background, if the user wants that and there is one. The returned
// function removes its temporary file. A failure is only logged, because the address was printed too.
func openPage(ctx context.Context, con *console.Console, c *companion.Companion, f *serveFlags) (clean func(), opened bool) {
	if !con.Settings.OpenBrowser || f.noOpen {
		return func() {}, false
	}
	address, err := c.PageAddress()
	if err == nil {
		clean, err = reach.ShowPage(ctx, con, address)
	}
	if err != nil {
		con.Log.Info("the browser was not opened", "err", err)
		return func() {}, false
	}
	return clean, true
}
