package cli

import (
	"context"
	"path/filepath"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/model"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// setupBridge is setup's part of the bridge, undoBridge takes it back.
func (a *app) setupBridge(ctx context.Context, _ agent.Agent, f setupFlags) (setupReport, error) {
	text, changed, err := model.InstallBridge(ctx, a.kit, nil, f.dryRun)
	r := setupReport{Action: "kept", Text: text}
	if changed {
		r.Action = "changed"
	}
	return a.atBridge(r), err
}

func (a *app) undoBridge(ctx context.Context, _ agent.Agent, f setupFlags) (setupReport, error) {
	s, err := a.kit.Store()
	if err != nil {
		return setupReport{}, err
	}
	st, err := bridge.Look(s)
	if err == nil && !st.Installed && !st.Headless {
		return setupReport{}, errNothingSetUp
	}
	if !f.dryRun {
		if _, err := model.RemoveBridge(ctx, a.kit); err != nil {
			return setupReport{}, err
		}
	}
	return a.atBridge(setupReport{Action: "removed", Text: "the bridge to Gemini CLI is taken away"}), nil
}

// atBridge adds where the bridge is.
func (a *app) atBridge(r setupReport) setupReport {
	if s, err := a.kit.Store(); err == nil {
		r.Path = filepath.Join(s.Dir(), store.BridgeName)
	}
	return r
}
