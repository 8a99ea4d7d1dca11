package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the system calls that no command may make: they change walls, look
// into other processes, or open parts of the kernel that tests have no use for.
var denied = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_CHROOT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
}

// families are the socket families that commands may use. Others, vsock above
// all, reach past a network namespace.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// newTimeFlag is CLONE_NEWTIME; in clone it would be part of the exit signal, so
// only unshare knows it.
const newTimeFlag = 0x80

// Offsets in struct seccomp_data; both supported machines are little-endian.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24
)

const (
	bpfLoad  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLow = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfBits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfMask  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfRet   = unix.BPF_RET | unix.BPF_K
)

func errno(e unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: bpfRet, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

var (
	allow   = unix.SockFilter{Code: bpfRet, K: unix.SECCOMP_RET_ALLOW}
	loadNr  = unix.SockFilter{Code: bpfLoad, K: offNumber}
	loadArg = [...]unix.SockFilter{{Code: bpfLoad, K: offArg0}, {Code: bpfLoad, K: offArg1}}
)

// auditArch is the machine whose system calls pass; 32-bit ones are refused
// whole.
func auditArch() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("no system call filter for %s", runtime.GOARCH)
}

// filter builds the program: a list of rules, each leaving the number loaded.
// With tcpOnly, internet sockets can only be streams, which landlock closes.
func filter(tcpOnly bool) ([]unix.SockFilter, error) {
	arch, err := auditArch()
	if err != nil {
		return nil, err
	}
	p := []unix.SockFilter{
		{Code: bpfLoad, K: offArch},
		{Code: bpfEqual, K: arch, Jt: 1},
		errno(unix.ENOSYS),
		loadNr,
	}
	if runtime.GOARCH == "amd64" { // the x32 calls have numbers of their own
		p = append(p, unix.SockFilter{Code: bpfAtLow, K: 0x40000000, Jf: 1}, errno(unix.ENOSYS))
	}
	for _, nr := range denied {
		p = append(p, unix.SockFilter{Code: bpfEqual, K: nr, Jf: 1}, errno(unix.EPERM))
	}
	// The flags of clone3 lie in memory, where a filter cannot look; C libraries
	// fall back to clone.
	p = append(p, unix.SockFilter{Code: bpfEqual, K: unix.SYS_CLONE3, Jf: 1}, errno(unix.ENOSYS))
	p = append(p, when(unix.SYS_CLONE, loadArg[0], unix.SockFilter{Code: bpfBits, K: namespaceFlags, Jf: 1}, errno(unix.EPERM), allow)...)
	p = append(p, when(unix.SYS_UNSHARE, loadArg[0], unix.SockFilter{Code: bpfBits, K: namespaceFlags | newTimeFlag, Jf: 1}, errno(unix.EPERM), allow)...)
	return append(append(p, sockets(tcpOnly)...), allow), nil
}

// sockets lets only the known families pass.
func sockets(tcpOnly bool) []unix.SockFilter {
	rule := []unix.SockFilter{loadArg[0]}
	for _, f := range families {
		if tcpOnly && (f == unix.AF_INET || f == unix.AF_INET6) {
			rule = append(rule,
				unix.SockFilter{Code: bpfEqual, K: f, Jf: 5},
				loadArg[1],
				unix.SockFilter{Code: bpfMask, K: 0xf},
				unix.SockFilter{Code: bpfEqual, K: unix.SOCK_STREAM, Jf: 1},
				allow,
				errno(unix.EACCES))
			continue
		}
		rule = append(rule, unix.SockFilter{Code: bpfEqual, K: f, Jf: 1}, allow)
	}
	return when(unix.SYS_SOCKET, append(rule, errno(unix.EAFNOSUPPORT))...)
}

// when runs a rule, which must end in a return, for one system call.
func when(nr uint32, rule ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{{Code: bpfEqual, K: nr, Jf: uint8(len(rule))}}, rule...)
}

// restrictCalls installs the filter on the calling thread; processes that it
// starts inherit it. The thread must have no_new_privs.
func restrictCalls(tcpOnly bool) error {
	p, err := filter(tcpOnly)
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if e != 0 {
		return fmt.Errorf("install the system call filter: %w", e)
	}
	return nil
}
