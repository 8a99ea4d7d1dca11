package snapshot

import "syscall"

// childAttr puts git into a process group of its own and, unless it must end by
// itself, lets the kernel end it when this process dies.
func childAttr(withUs bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if withUs {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
