#include "textflag.h"

// See entry_linux_amd64.s.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	MOVD $0, R19

next:
	MOVD $24, R0 // PR_CAPBSET_DROP
	MOVD R19, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $167, R8 // prctl
	SVC
	ADD  $1, R19
	CMP  $64, R19
	BLT  next
	JMP  _rt0_arm64_linux(SB)
