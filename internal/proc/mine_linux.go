package proc

import "strconv"

func ofUser() (pids []int) {
	for _, name := range namesIn("/proc") {
		if pid, err := strconv.Atoi(name); err == nil && mine(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
