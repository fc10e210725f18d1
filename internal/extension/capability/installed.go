package capability

import (
	"time"

	"github.com/pollux-companion/pollux/internal/extension/store"
)

// Installed makes candidates of a store's extensions. agreed says whether the
// user consented to one as it lies there; used is when each ran last, by name, and may be nil. The bridge is left out.
func Installed(all []*store.Extension, agreed func(*store.Extension) bool, used map[string]time.Time) []Candidate {
	var out []Candidate
	for _, x := range all {
		if x.Name == Bridge {
			continue
		}
		usable := x.Problem == "" && x.EnabledHere
		out = append(out, Candidate{
			Extension: Extension{
				Manifest: x.Manifest, Dir: x.Dir, Installed: x,
				Local: x.EnabledHere && !x.EnabledUser, Used: used[x.Name],
			},
			Enabled: usable,
			Agreed:  usable && len(x.Manifest.Tools)+len(x.Manifest.Docs) > 0 && agreed(x),
		})
	}
	return out
}
