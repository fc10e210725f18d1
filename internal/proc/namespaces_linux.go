package proc

import "os"

// Namespaces names the process and the user namespace of this process; "" where there are none, or they cannot be told. In two different
// ones, a process has two numbers, and ancestors may be out of sight.
func Namespaces() string {
	pid, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	user, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return pid // a kernel without user namespaces
	}
	return pid + " " + user
}
