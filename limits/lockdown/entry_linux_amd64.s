#include "textflag.h"

// entry is where the kernel starts a worker that was linked with
// -E=github.com/openclaw/codemode-supervisor/limits/lockdown.entry. It empties the
// capability bounding set, prctl(PR_CAPBSET_DROP, 0 to 63), and goes on to the Go runtime.
// Here there is one thread; an instant later each of these calls would have to be made on
// all of them, with the world stopped. Errors do not matter: [Begin] looks at what is left.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	XORL BX, BX

next:
	MOVL $24, DI  // PR_CAPBSET_DROP
	MOVQ BX, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $157, AX // prctl
	SYSCALL
	INCL BX
	CMPL BX, $64
	JLT  next
	JMP  _rt0_amd64_linux(SB)
