package dispatch

import (
	"os"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/store"
)

// maxPlaces bounds how many folders Survey examines.
const maxPlaces = 64

// Survey returns what is offered in the store's working folder, and in other folders that differ: first in dirs,
// then in the folders that rules about extensions name. A folder without a difference, or that is gone, has nil.
func (d *Dispatcher) Survey(dirs ...string) (*capability.Set, map[string]*capability.Set, error) {
	all, err := d.o.Store.List()
	if err != nil {
		return nil, nil, err
	}
	for _, x := range all {
		dirs = append(dirs, x.Places()...)
	}
	in, places := map[string]*capability.Set{}, []string{}
	wanted := map[*store.Extension]bool{}
	for _, x := range all {
		wanted[x] = x.EnabledHere
	}
	for _, dir := range dirs {
		if _, seen := in[dir]; seen {
			continue
		}
		in[dir] = nil
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || len(places) == maxPlaces {
			continue
		}
		other := false
		for _, x := range all {
			on := x.EnabledIn(dir)
			wanted[x] = wanted[x] || on
			other = other || on != x.EnabledHere
		}
		if other {
			places = append(places, dir)
		}
	}
	answers, used := d.answers(all, func(x *store.Extension) bool { return wanted[x] }), d.o.Used()
	for _, dir := range places {
		in[dir] = capability.New(candidates(all, func(x *store.Extension) bool { return x.EnabledIn(dir) }, answers, used))
	}
	return capability.New(candidates(all, here, answers, used)), in, nil
}
