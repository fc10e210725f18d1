package companion

import (
	"slices"
	"testing"
)

// SPEC CC-1, CC-18: the settings that an agent's own environment names, and no others.
func TestOwnFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent string
		env   []string
		want  []string
	}{
		{"claude", []string{"HOME=/h", "CLAUDE_CONFIG_DIR=/own"}, []string{"/own/settings.json"}},
		{"claude", []string{"HOME=/h"}, nil},
		{"claude", []string{"CLAUDE_CONFIG_DIR=own"}, nil},
		{"opencode", []string{"HOME=/h", "CLAUDE_CONFIG_DIR=/own"}, nil},
		{"codex", []string{"CLAUDE_CONFIG_DIR=/own"}, nil},
	} {
		if got := ownFiles(tt.agent, tt.env); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %v: %v", tt.agent, tt.env, got)
		}
	}
}
