package runner

import "syscall"

// endWithUs changes nothing: macOS has no signal for a parent's death.
func endWithUs(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }
