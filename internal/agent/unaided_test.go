package agent

import "testing"

// Every agent is sent to a companion by variables, or says how it finds one without.
func TestUnaided(t *testing.T) {
	for _, a := range All() {
		if (a.Env == nil) != (a.Unaided != "") {
			t.Errorf("%s: variables: %v; without them %q", a.Name, a.Env != nil, a.Unaided)
		}
	}
}
