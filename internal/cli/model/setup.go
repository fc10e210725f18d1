package model

import (
	"context"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// A SetupBridge writes and removes the bridge for pollux setup.
type SetupBridge struct{ Kit *tools.Kit }

// SetUp writes the bridge, or with dryRun says what it would do.
func (b SetupBridge) SetUp(ctx context.Context, dryRun bool) (path, text string, changed bool, err error) {
	text, changed, err = installBridge(ctx, b.Kit, nil, dryRun)
	return b.path(), text, changed, err
}

// TakeAway removes the bridge; removed is false if there was none.
func (b SetupBridge) TakeAway(ctx context.Context, dryRun bool) (path string, removed bool, err error) {
	s, err := b.Kit.Store()
	if err != nil {
		return "", false, err
	}
	if st, err := bridge.Look(s); err == nil && !st.Installed && !st.Headless {
		return "", false, nil
	}
	if !dryRun {
		if _, err := bridge.Remove(ctx, s); err != nil {
			return "", false, err
		}
	}
	return b.path(), true, nil
}

func (b SetupBridge) path() string {
	s, err := b.Kit.Store()
	if err != nil {
		return ""
	}
	return filepath.Join(s.Dir(), store.BridgeName)
}

// BridgeFindings returns findings about the bridge to extensions for a CLI with these settings, started in dir.
func BridgeFindings(settings, dir string) []finding.Finding {
	s, err := store.Open(&store.Options{Home: filepath.Dir(filepath.Dir(settings)), WorkDir: dir})
	if err != nil {
		return nil
	}
	st, err := lookAtBridge(s)
	if err != nil {
		return []finding.Finding{{ID: "bridge", Level: finding.Warning, What: "the bridge to extensions cannot be looked at: " + err.Error()}}
	}
	var out []finding.Finding
	for _, t := range st.Troubles {
		f := finding.Finding{ID: "bridge", Level: finding.Warning, What: t.What, Why: "the model has no tools of your extensions here, or not pollux's"}
		switch {
		case t.Kind == "missing" && !st.Installed:
			f.Level, f.Why = finding.Note, "Gemini CLI knows the tools and documents of extensions by it alone"
		case !t.Stops:
			f.Why = "it can be taken for pollux, whose tools run in a sandbox"
		}
		if f.Remark = t.Mend; t.Command() {
			f.Mend, f.Remark = t.Mend, ""
		}
		out = append(out, f)
	}
	if st.Installed && len(out) == 0 {
		out = append(out, finding.Finding{ID: "bridge", Level: finding.OK, What: "the bridge to extensions is there, as the MCP server " + st.Server})
	}
	return out
}
