package capability

import (
	"time"

	"github.com/pollux-companion/pollux/internal/extension/store"
)

// Installed makes candidates of a store's extensions, as enabled in the store's working folder. answer is what the
// user said about an extension's current content. used is when each last ran, by name, and may be nil. The bridge is
// left out.
func Installed(all []*store.Extension, answer func(*store.Extension) (agreed, refused bool), used map[string]time.Time) []Candidate {
	return installed(all, func(x *store.Extension) bool { return x.EnabledHere }, answer, used)
}

// InstalledIn is Installed for another folder, absolute. It does not read the settings of that folder.
func InstalledIn(dir string, all []*store.Extension, answer func(*store.Extension) (agreed, refused bool), used map[string]time.Time) []Candidate {
	return installed(all, func(x *store.Extension) bool { return x.EnabledIn(dir) }, answer, used)
}

func installed(all []*store.Extension, on func(*store.Extension) bool, answer func(*store.Extension) (agreed, refused bool), used map[string]time.Time) []Candidate {
	var out []Candidate
	for _, x := range all {
		if x.Name == Bridge {
			continue
		}
		here := on(x)
		usable := x.Problem == "" && here
		var agreed, refused bool
		if usable && len(x.Manifest.Tools)+len(x.Manifest.Docs) > 0 {
			agreed, refused = answer(x)
		}
		out = append(out, Candidate{
			Extension: Extension{
				Manifest: x.Manifest, Dir: x.Dir, Installed: x,
				Local: here && !x.EnabledUser, Used: used[x.Name],
			},
			Enabled: usable,
			Agreed:  agreed, Refused: refused,
		})
	}
	return out
}
