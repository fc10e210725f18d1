package dispatch

import (
	"time"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// here says whether an extension is enabled in the store's working folder.
func here(x *store.Extension) bool { return x.EnabledHere }

// candidates makes candidates of a store's extensions. on says whether one is enabled in the folder in question. answer is what the user
// said about an extension's current content. used is when each last ran, by name, and may be nil. The bridge is left out.
func candidates(all []*store.Extension, on func(*store.Extension) bool, answer func(*store.Extension) (agreed, refused bool), used map[string]time.Time) []capability.Candidate {
	var out []capability.Candidate
	for _, x := range all {
		if x.Name == capability.Bridge {
			continue
		}
		enabled := on(x)
		usable := x.Problem == "" && enabled
		var agreed, refused bool
		if usable && len(x.Manifest.Tools)+len(x.Manifest.Docs) > 0 {
			agreed, refused = answer(x)
		}
		out = append(out, capability.Candidate{
			Extension: capability.Extension{
				Manifest: x.Manifest, Dir: x.Dir, Folder: x.Folder,
				Local: enabled && !x.EnabledUser, Used: used[x.Name],
			},
			Enabled: usable,
			Agreed:  agreed, Refused: refused,
		})
	}
	return out
}
