// Package permission describes what an extension's tools may do: levels of file access and hosts, their notation,
// which permission covers which, and the sentences that a user agrees to (SPEC E-2).
package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Access is a level of file access (SPEC E-2).
type Access int

// The levels, narrowest first.
const (
	None      Access = iota // nothing
	Workspace               // the nearest root around the working folder
	Home                    // the user's home folder
	Full                    // every file that the user can reach
)

var accessNames = [...]string{"none", "workspace", "home", "full"}

// ParseAccess reads none, workspace, home or full, in exactly this spelling.
func ParseAccess(s string) (Access, error) {
	i := slices.Index(accessNames[:], s)
	if i < 0 {
		return None, fmt.Errorf("%q is no level of access; write one of %s", s, strings.Join(accessNames[:], ", "))
	}
	return Access(i), nil
}

// AccessNames returns the levels as the manifest writes them, narrowest first.
func AccessNames() []string { return slices.Clone(accessNames[:]) }

// String returns the level as the manifest writes it.
func (a Access) String() string { return accessNames[a] }

// MarshalText encodes the level as its name.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText decodes what MarshalText wrote.
func (a *Access) UnmarshalText(text []byte) error {
	v, err := ParseAccess(string(text))
	if err == nil {
		*a = v
	}
	return err
}

// Permissions is what an extension's tools may do; the zero value denies everything. Its JSON is the manifest's
// permissions block.
type Permissions struct {
	Read, Write Access
	Hosts       []Host // network.allowedHosts
}

// Host is one entry of allowedHosts, validated and in lower case.
type Host struct {
	Text     string // as the manifest writes it
	Scheme   string // empty: https and http
	Name     string // host name or IP address (IPv6 in brackets); without the "*." of a wildcard
	Wildcard bool   // every name below Name, not Name itself
	Ports    []int  // allowed ports
}

// block is the manifest's form of Permissions.
type block struct {
	Filesystem struct {
		Read  Access `json:"read"`
		Write Access `json:"write"`
	} `json:"filesystem"`
	Network struct {
		AllowedHosts []string `json:"allowedHosts"`
	} `json:"network"`
}

// MarshalJSON writes the manifest's block, with every field.
func (p Permissions) MarshalJSON() ([]byte, error) {
	var b block
	b.Filesystem.Read, b.Filesystem.Write = p.Read, p.Write
	b.Network.AllowedHosts = []string{}
	for _, h := range p.Hosts {
		b.Network.AllowedHosts = append(b.Network.AllowedHosts, h.Text)
	}
	return json.Marshal(b)
}

// UnmarshalJSON reads what MarshalJSON wrote. An unknown level or host is an error, never a wider permission.
func (p *Permissions) UnmarshalJSON(data []byte) error {
	var b block
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	out := Permissions{Read: b.Filesystem.Read, Write: b.Filesystem.Write}
	for _, text := range b.Network.AllowedHosts {
		h, err := ParseHost(text)
		if err != nil {
			return fmt.Errorf("the allowed host %q: %w", text, err)
		}
		out.Hosts = append(out.Hosts, h)
	}
	*p = out
	return nil
}

// EffectiveRead returns the read level. Whoever may change files may read them.
func (p Permissions) EffectiveRead() Access { return max(p.Read, p.Write) }

// Covers reports whether p allows everything that q allows.
func (p Permissions) Covers(q Permissions) bool {
	return p.EffectiveRead() >= q.EffectiveRead() && p.Write >= q.Write && len(p.missing(q)) == 0
}

// missing returns the hosts of q that p does not cover.
func (p Permissions) missing(q Permissions) []Host {
	var out []Host
	for _, h := range q.Hosts {
		if !slices.ContainsFunc(p.Hosts, func(mine Host) bool { return mine.covers(h) }) {
			out = append(out, h)
		}
	}
	return out
}

// Change is the difference between two sets of permissions, in sentences.
type Change struct{ Wider, Narrower []string }

// Compare returns what p allows beyond agreed (Wider) and what it gives up (Narrower).
func (p Permissions) Compare(agreed Permissions) Change {
	var c Change
	add := func(now, before Access, sentence [4]string) {
		switch {
		case now > before:
			c.Wider = append(c.Wider, sentence[now])
		case now < before:
			c.Narrower = append(c.Narrower, sentence[now])
		}
	}
	add(p.EffectiveRead(), agreed.EffectiveRead(), readSentence)
	add(p.Write, agreed.Write, writeSentence)
	for _, h := range agreed.missing(p) {
		c.Wider = append(c.Wider, "Its tools may contact "+h.String()+".")
	}
	for _, h := range p.missing(agreed) {
		c.Narrower = append(c.Narrower, "Its tools may no longer contact "+h.String()+".")
	}
	return c
}

// Sentences describes the permissions in plain language, one per sentence, always in the same order: reading,
// changing, network. It also says what is denied.
func (p Permissions) Sentences() []string {
	return []string{readSentence[p.EffectiveRead()], writeSentence[p.Write], p.networkSentence()}
}

// Writing to the home folder equals full access, because a file placed there can run at the next login. The sentence
// must not sound weaker.
var readSentence = [4]string{
	None:      "Its tools may read none of your files.",
	Workspace: "Its tools may read the files of the workspace they are used in, and no other files of yours.",
	Home:      "Its tools may read all files in your home folder, except your secret stores.",
	Full:      "Its tools may read every file that you can read, except your secret stores.",
}

var writeSentence = [4]string{
	None:      "Its tools may change no files.",
	Workspace: "Its tools may create, change and delete files of the workspace they are used in.",
	Home:      "Its tools may create, change and delete files anywhere in your home folder, except your secret stores; with that they can arrange for programs to run as you later, outside any limits.",
	Full:      "Its tools may create, change and delete every file that you can, except your secret stores; with that they can arrange for programs to run as you later, outside any limits.",
}

func (p Permissions) networkSentence() string {
	if len(p.Hosts) == 0 {
		return "Its tools may not use the network."
	}
	names := make([]string, len(p.Hosts))
	for i, h := range p.Hosts {
		names[i] = h.String()
	}
	return "Its tools may contact " + strings.Join(names, ", ") + ", and nothing else on the network."
}
