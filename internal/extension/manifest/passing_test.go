package manifest

import (
	"regexp"
	"strings"
	"testing"
)

// SPEC P-3: names that a person or the CLI could mistake for pollux are reserved, and no others.
func TestPasses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"pollux", "Pollux", "POLLUX", "pollux-", "pollux-tools", "pollux_x", "pollux x", "pollux.x", "pollux:x", "-pollux", "_pollux", " pollux ",
		"mcp_pollux", "mcp_mcp_pollux", "MCP-pollux", "mcp_pollux_x", "pollux\u200b", "pol\u200dlux", "p\u043ellux", "\u0440\u043ellu\u0445", "p\u03bfllux", "pöllüx", "pollu\u0308x",
		"p0llux", "po11ux", "poIIux", "ｐｏｌｌｕｘ", "𝗽𝗼𝗹𝗹𝘂𝘅", "ⓟⓞⓛⓛⓤⓧ", "polluxя", "pollux—x", "pollux/x", "mcp_\u0440ollux", "pollux\u202e",
	} {
		if !Passes(name) {
			t.Errorf("%q (%+q) is not reserved", name, name)
		}
	}
	for _, name := range []string{"", "-", "mcp_", "polluxion", "polluxes", "castor", "castor-pollux", "x-pollux", "my_pollux", "poll", "pol-lux", "数据库", "mcp", "bollux", "pollex"} {
		if Passes(name) {
			t.Errorf("%q is reserved", name)
		}
	}
}

// FuzzPasses: a server is reserved if Gemini CLI's name for it begins like the names of pollux's tools.
func FuzzPasses(f *testing.F) {
	for _, name := range []string{"pollux", "mcp_pollux-abc", "ёpollux", "pollux.", "\xff"} {
		f.Add(name)
	}
	invalid := regexp.MustCompile(`[^a-zA-Z0-9_\-.:]`)
	f.Fuzz(func(t *testing.T, name string) {
		tool := name + "_t"
		if !strings.HasPrefix(tool, "mcp_") {
			tool = "mcp_" + tool
		}
		tool = invalid.ReplaceAllString(tool, "_")
		if (strings.HasPrefix(tool, "mcp_pollux_") || strings.HasPrefix(tool, "mcp_pollux-")) && !Passes(name) {
			t.Errorf("%q makes %q and is not reserved", name, tool)
		}
	})
}
