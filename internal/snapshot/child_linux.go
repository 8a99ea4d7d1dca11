package snapshot

import "syscall"

// childAttr puts git into a process group of its own and lets the kernel end it
// when this process dies.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
