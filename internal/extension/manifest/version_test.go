package manifest

import "testing"

// The order is that of semver.org, whatever the length of the numbers.
func TestCompareVersions(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"0.0.1", "0.9.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0",
		"1.0.1", "2.0.0", "10.0.0", "99999999999999999999999.0.0", "100000000000000000000000.0.0",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			order, ok := CompareVersions("v"+a, b+"+build.5")
			if !ok || order < 0 != (i < j) || order > 0 != (i > j) {
				t.Errorf("%s and %s: %d, %v", a, b, order, ok)
			}
		}
	}
	for _, bad := range []string{"", "1", "1.0", "x", "1.0.0.0", "01.0.0"} {
		if _, ok := CompareVersions(bad, "1.0.0"); ok {
			t.Errorf("%q has an age", bad)
		}
		if _, ok := CompareVersions("1.0.0", bad); ok {
			t.Errorf("%q has an age", bad)
		}
	}
}
