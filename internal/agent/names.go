package agent

// Names returns the names of the agents that fit; a nil fits selects all.
func Names(fits func(Agent) bool) (names []string) {
	for _, a := range All() {
		if fits == nil || fits(a) {
			names = append(names, a.Name)
		}
	}
	return names
}
