package runner

import (
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// subject returns what a user agrees to with an installed extension, whose content has manifest m and the given consent hash. m must be
// from that very content.
func subject(x *store.Extension, m *manifest.Manifest, content string) consent.Subject {
	s := consent.Subject{Extension: x.Name, Version: m.Version, Commit: x.Commit(), Content: content, Permissions: m.Permissions, Source: "unrecorded"}
	switch src, err := x.Source(); {
	case x.Linked():
		s.Source, s.Content, s.Commit = "link "+x.Dir, "", ""
	case err == nil:
		s.Source = string(src.Kind) + " " + src.Location
		if src.Subdir != "" {
			s.Source += " folder " + src.Subdir
		}
	}
	return s
}

// Subject returns what a user agrees to with an extension as it is on the disk now.
func Subject(x *store.Extension) (consent.Subject, error) {
	if x.Linked() {
		return subject(x, x.Manifest, ""), nil
	}
	tree, err := manifest.ReadTree(x.Dir)
	if err != nil {
		return consent.Subject{}, err
	}
	return subject(x, x.Manifest, tree.ConsentHash()), nil
}

// Agreed returns the user's answer about an extension as it is on the disk now.
func Agreed(answers *consent.Store, x *store.Extension) (consent.Verdict, error) {
	return answers.State(x.Name, func() (consent.Subject, error) { return Subject(x) })
}
