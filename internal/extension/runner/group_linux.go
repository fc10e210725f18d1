package runner

import "syscall"

// endWithUs makes the kernel end the program when pollux is killed.
func endWithUs(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}
