package sandbox

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// A Plan is what Run would let a command do on this machine. Nothing is run to find out.
type Plan struct {
	// Program is what would run; Args are its arguments, without the program's name.
	Program string   `json:"program"`
	Args    []string `json:"args"`
	// Dir is the working folder.
	Dir string `json:"dir"`
	// Elsewhere is the access to everything that Paths does not name: AccessNone, AccessRead or AccessWrite.
	Elsewhere Access `json:"elsewhere"`
	// Paths are sorted as String prints them.
	Paths []PlanPath `json:"paths"`
	// Hosts are the entries of the policy; empty means no network.
	Hosts []string `json:"hosts"`
	// Environment holds only names: values can be secrets.
	Environment []string   `json:"environment"`
	Limits      PlanLimits `json:"limits"`
	// Notes are sentences about what the plan cannot promise.
	Notes []string `json:"notes"`
}

// Access is what a command may do at a path.
type Access string

// The kinds of access, in the order of a plan.
const (
	AccessWrite   Access = "write"   // read and change
	AccessRead    Access = "read"    // read only
	AccessPrivate Access = "private" // write, in memory of the command's own
	AccessGiven   Access = "given"   // made for the command, read-only; it hides the host's
	AccessHidden  Access = "hidden"  // shown empty, whatever the host has there
	AccessDevice  Access = "device"
	AccessLink    Access = "link"    // a symbolic link
	AccessWatched Access = "watched" // what the command makes there is moved aside after the run
	AccessNone    Access = "none"
)

// A PlanPath is a path and everything below it, except what another PlanPath names.
type PlanPath struct {
	Access Access `json:"access"`
	Path   string `json:"path"`
	// Detail is a link's target, or where a path comes from or why it is there.
	Detail string `json:"detail,omitempty"`
}

// PlanLimits are Limits with the defaults filled in.
type PlanLimits struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Memory     int64   `json:"memoryBytes"`
	Scratch    int64   `json:"scratchBytes"`
	FileSize   int64   `json:"fileBytes"`
	Disk       int64   `json:"diskBytes"`
	Output     int64   `json:"outputBytes"`
	Traffic    int64   `json:"trafficBytes"`
	Processes  int     `json:"processes"`
	Files      int     `json:"files"`
}

// Explain says what Run would let c do under p, or why it would refuse. It runs nothing, and does not test whether
// this machine can enforce the plan; Check does.
func (s *Sandbox) Explain(p Policy, c Command) (*Plan, error) {
	return s.explained(p, c, func(c Command) (*Plan, error) { return s.explain(p, c) })
}

// explained is Explain; the function explain does the platform's part.
func (s *Sandbox) explained(p Policy, c Command, explain func(Command) (*Plan, error)) (*Plan, error) {
	c.Limits = c.Limits.filled()
	if err := c.check(); err != nil {
		return nil, err
	}
	plan, err := explain(c)
	if err != nil {
		return nil, err
	}
	plan.Args = append([]string{}, c.Args[1:]...)
	plan.Hosts, plan.Notes = []string{}, append([]string{}, plan.Notes...)
	for _, h := range p.Hosts {
		plan.Hosts = append(plan.Hosts, h.String())
	}
	l := c.Limits
	plan.Limits = PlanLimits{Seconds: l.Time.Seconds(), CPUSeconds: l.CPU.Seconds(), Memory: l.Memory, Scratch: l.Scratch, FileSize: l.FileSize, Disk: l.Disk, Output: l.Output, Traffic: l.Traffic, Processes: l.Processes, Files: l.Files}
	order := []Access{AccessWrite, AccessRead, AccessPrivate, AccessGiven, AccessHidden, AccessDevice, AccessLink, AccessWatched}
	slices.SortFunc(plan.Paths, func(a, b PlanPath) int {
		if a.Access != b.Access {
			return slices.Index(order, a.Access) - slices.Index(order, b.Access)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return plan, nil
}

// String prints the plan for people.
func (p *Plan) String() string {
	var w strings.Builder
	line := func(name, text string) { fmt.Fprintf(&w, "%-9s%s\n", name, text) }
	line("runs", strings.Join(append([]string{p.Program}, quoted(p.Args)...), " "))
	line("in", p.Dir)
	line("contacts", cmp.Or(strings.Join(p.Hosts, ", "), "nobody"))
	line("knows", strings.Join(p.Environment, " "))
	l := p.Limits
	line("has", fmt.Sprintf("%v, %v of processor time, %s of memory, %d processes, %s of output, %s for private files, %d open files, %s for a file, %s for all that it writes",
		time.Duration(l.Seconds*float64(time.Second)), time.Duration(l.CPUSeconds*float64(time.Second)), size(l.Memory), l.Processes, size(l.Output), size(l.Scratch), l.Files, size(l.FileSize), size(l.Disk)))
	w.WriteString(p.paths())
	for _, n := range p.Notes {
		line("note", n)
	}
	return w.String()
}

// paths prints a line for each path, or one line for three or more in the same folder with the same detail.
func (p *Plan) paths() string {
	var w strings.Builder
	if p.Elsewhere != AccessNone {
		fmt.Fprintf(&w, "%-9s/  and all below, but for what follows\n", p.Elsewhere)
	}
	for i := 0; i < len(p.Paths); {
		first := p.Paths[i]
		dir, names := path.Dir(first.Path), []string{}
		for _, o := range p.Paths[i:] {
			if o.Access != first.Access || path.Dir(o.Path) != dir || o.Detail != first.Detail {
				break
			}
			names = append(names, path.Base(o.Path))
		}
		if len(names) < 3 {
			names = names[:1]
		}
		text := first.Path
		if len(names) > 1 {
			text = strings.TrimSuffix(dir, "/") + "/{" + strings.Join(names, " ") + "}"
		}
		if first.Detail != "" {
			text += "  " + first.Detail
		}
		fmt.Fprintf(&w, "%-9s%s\n", first.Access, text)
		i += len(names)
	}
	if p.Elsewhere == AccessNone {
		w.WriteString("nothing  else\n")
	}
	return w.String()
}

// quoted makes arguments fit on one line, and shows where each ends.
func quoted(args []string) []string {
	var all []string
	for _, a := range args {
		if a == "" || strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == '\\' || r >= 0x7f }) {
			a = fmt.Sprintf("%q", a)
		}
		all = append(all, a)
	}
	return all
}
