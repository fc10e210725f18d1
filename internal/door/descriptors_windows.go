package door

import "math"

// descriptors is how many files and connections this process may have open at one time.
func descriptors() int { return math.MaxInt32 }
