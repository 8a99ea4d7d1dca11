//go:build !linux

package snapshot

import "syscall"

// childAttr puts git into a process group of its own.
func childAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
