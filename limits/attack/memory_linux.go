package attack

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

const (
	pageSize  = 65536 // a multiple of every page size there is
	readWrite = unix.PROT_READ | unix.PROT_WRITE
	private   = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	ours      = 128 // FUTEX_PRIVATE_FLAG (linux/futex.h), as all operations here
)

// mapped is the attack on a page that is mapped as the runtime does it. Its address is
// the first argument.
func mapped(nr uintptr, args ...uintptr) func() syscall.Errno {
	return func() syscall.Errno {
		page, e := raw(unix.SYS_MMAP, 0, pageSize, readWrite, private, none, 0)
		if e != 0 {
			return e
		}
		_, e = raw(nr, append([]uintptr{page}, args...)...)
		return e
	}
}

// futex is one operation on a word that nobody waits for.
func futex(op uintptr) func() syscall.Errno {
	return call(unix.SYS_FUTEX, at(uint32(0)), op, 1, 0, at(uint32(0)), 1)
}

// segment makes System V shared memory that only this process can find, has try use it, and
// removes it.
func segment(try func(id uintptr) syscall.Errno) func() syscall.Errno {
	return func() syscall.Errno {
		id, e := raw(unix.SYS_SHMGET, unix.IPC_PRIVATE, pageSize, 0o700)
		if e != 0 {
			return e
		}
		e = try(id)
		raw(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0)
		return e
	}
}

func memory() []Attack {
	mmap := func(prot, flags, fd uintptr) func() syscall.Errno {
		return call(unix.SYS_MMAP, 0, pageSize, prot, flags, fd, 0)
	}
	code := funcAddress() &^ (pageSize - 1)
	const execute = unix.PROT_READ | unix.PROT_EXEC
	queue := scratch() + uintptr(len("/tmp/")) // just a name
	ofParentPages := at([1]uintptr{8})

	return []Attack{
		{"map writable and executable memory", "code of its own", by(), mmap(readWrite|unix.PROT_EXEC, private, none)},
		{"map executable memory", "code of its own", by(), mmap(execute, private, none)},
		{"map memory that may only be executed", "code of its own", by(), mmap(unix.PROT_EXEC, private, none)},
		{"map executable memory over other memory", "code of its own", by(), func() syscall.Errno {
			page, e := raw(unix.SYS_MMAP, 0, pageSize, readWrite, private, none, 0)
			if e != 0 {
				return e
			}
			_, e = raw(unix.SYS_MMAP, page, pageSize, execute, private|unix.MAP_FIXED, none, 0)
			return e
		}},
		{"map over the worker's code", "other code at the same place", by(), call(unix.SYS_MMAP, code, pageSize, readWrite, private|unix.MAP_FIXED_NOREPLACE, none, 0)}, // EEXIST
		{"map shared memory", "memory for a second process", by(), mmap(readWrite, unix.MAP_SHARED|unix.MAP_ANONYMOUS, none)},
		{"map a descriptor", "what is in a file", by(), mmap(unix.PROT_READ, unix.MAP_PRIVATE, 0)},
		{"map a descriptor, shared", "write to a file", by(), mmap(readWrite, unix.MAP_SHARED, 0)},
		{"map a descriptor, executable", "load a library", by(), mmap(execute, unix.MAP_PRIVATE, 0)},
		{"map huge pages", "the host's reserve", by(), mmap(readWrite, private|unix.MAP_HUGETLB, none)},
		{"map a stack that grows", "run into other memory", by(), mmap(readWrite, private|unix.MAP_GROWSDOWN, none)},
		{"map locked memory", "memory that cannot be swapped", by(), mmap(readWrite, private|unix.MAP_LOCKED, none)},
		{"make memory executable", "code of its own", by(), mapped(unix.SYS_MPROTECT, pageSize, execute)},
		{"make the worker's code writable", "other code at the same place", by(), call(unix.SYS_MPROTECT, code, 0, readWrite|unix.PROT_EXEC)}, // of no length
		{"make memory executable with a key", "code of its own", by(), mapped(unix.SYS_PKEY_MPROTECT, pageSize, execute, none)},
		{"pkey_alloc", "change rights without a system call", by(), call(unix.SYS_PKEY_ALLOC, 0, 0)},
		{"mremap", "move code", by(), mapped(unix.SYS_MREMAP, pageSize, pageSize, 0)},
		{"remap_file_pages", "a source of kernel bugs", by(), mapped(unix.SYS_REMAP_FILE_PAGES, 0, 0, 0, 0)},
		{"mseal", "memory that cannot be unmapped", by(), mapped(unix.SYS_MSEAL, pageSize, 0)},
		{"map_shadow_stack", "forge return addresses", by(), call(unix.SYS_MAP_SHADOW_STACK, 0, 0, 0)},
		{"brk", "memory past the runtime's", by(), call(unix.SYS_BRK, 0)},
		{"mlock", "memory that cannot be swapped", by(), mapped(unix.SYS_MLOCK, pageSize)},
		{"mlock2", "memory that cannot be swapped", by(), mapped(unix.SYS_MLOCK2, pageSize, unix.MLOCK_ONFAULT)},
		{"msync", "disk traffic", by(), mapped(unix.SYS_MSYNC, pageSize, unix.MS_ASYNC)},
		{"mincore", "learn what is in memory", by(), mapped(unix.SYS_MINCORE, pageSize, room())},
		{"madvise to merge with others' memory", "learn what others have in memory", by(), mapped(unix.SYS_MADVISE, pageSize, unix.MADV_MERGEABLE)},
		{"madvise to wipe at fork", "a source of kernel bugs", by(), mapped(unix.SYS_MADVISE, pageSize, unix.MADV_WIPEONFORK)},
		{"madvise to poison memory", "take pages from the host", by(), mapped(unix.SYS_MADVISE, 0, unix.MADV_HWPOISON)}, // of no length
		{"memfd_create", "files without a file system", by(), call(unix.SYS_MEMFD_CREATE, text("x"), 0)},
		{"memfd_secret", "memory that nobody can look into", by(), call(unix.SYS_MEMFD_SECRET, 0)},
		{"userfaultfd", "stop the kernel in the middle of a copy", by(), call(unix.SYS_USERFAULTFD, 1)}, // UFFD_USER_MODE_ONLY
		{"shmget", "memory that outlives the worker", by(), segment(func(uintptr) syscall.Errno { return 0 })},
		{"shmat, executable", "code of its own", by(), prepared(unix.SYS_SHMAT, segment(func(id uintptr) syscall.Errno {
			address, e := raw(unix.SYS_SHMAT, id, 0, 0o100000) // SHM_EXEC (linux/shm.h)
			if e == 0 {
				raw(unix.SYS_SHMDT, address)
			}
			return e
		}))},
		{"semget", "kernel memory that outlives the worker", by(), func() syscall.Errno {
			id, e := raw(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, 0o600)
			if e == 0 {
				raw(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0)
			}
			return e
		}},
		{"msgget", "kernel memory that outlives the worker", by(), func() syscall.Errno {
			id, e := raw(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600)
			if e == 0 {
				raw(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
			}
			return e
		}},
		{"mq_open", "a queue that outlives the worker", by(answers(isolation.Rlimits, "EMFILE")), func() syscall.Errno { // no bytes for queues
			_, e := raw(unix.SYS_MQ_OPEN, queue, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600, 0)
			if e == 0 {
				raw(unix.SYS_MQ_UNLINK, queue)
			}
			return e
		}},
		{"move_pages of the supervisor", "where its memory is", by(outside, stranger, noSuchProcess), call(unix.SYS_MOVE_PAGES, parent, 1, ofParentPages, 0, room(), 0)},
		{"migrate_pages of the supervisor", "slow it down", by(outside, stranger, noSuchProcess), call(unix.SYS_MIGRATE_PAGES, parent, 1, room(), room())}, // from no node to no node
		{"set_mempolicy", "choose the host's memory", by(), call(unix.SYS_SET_MEMPOLICY, 0, 0, 0)},
		{"mbind", "choose the host's memory", by(), mapped(unix.SYS_MBIND, pageSize, 0, 0, 0, 0)},
		{"get_mempolicy", "learn the host's memory", by(), call(unix.SYS_GET_MEMPOLICY, room(), 0, 0, 0, 0)},
		{"membarrier", "interrupt other processors", by(), call(unix.SYS_MEMBARRIER, 0, 0)},               // MEMBARRIER_CMD_QUERY
		{"futex with priority inheritance", "a source of kernel bugs", by(), futex(6 | ours)},             // FUTEX_LOCK_PI
		{"futex to requeue", "a source of kernel bugs", by(), futex(4 | ours)},                            // FUTEX_CMP_REQUEUE
		{"futex to requeue with priority inheritance", "a source of kernel bugs", by(), futex(12 | ours)}, // FUTEX_CMP_REQUEUE_PI
		{"futex between processes", "wake others", by(), futex(1)},                                        // FUTEX_WAKE
		{"futex_waitv", "a newer futex", by(), call(unix.SYS_FUTEX_WAITV, 0, 0, 0, 0, 0)},
		{"futex_requeue", "a newer futex", by(), call(unix.SYS_FUTEX_REQUEUE, 0, 0, 0, 0)},
		{"set_robust_list", "have the kernel write at its exit", by(), call(unix.SYS_SET_ROBUST_LIST, 0, 0)},
		{"rseq", "a source of kernel bugs", by(), call(unix.SYS_RSEQ, 0, 0, none, 0)},
	}
}

// funcAddress is somewhere in the worker's code.
func funcAddress() uintptr {
	f := funcAddress
	return **(**uintptr)(unsafe.Pointer(&f))
}
