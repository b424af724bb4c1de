#include "textflag.h"

// The kernel starts the process here: stdoutAtStart = fcntl(1, F_GETFD), then becomes(stack), which returns if the process stays what it
// is, then the runtime's own entry. DX and the stack are as they were. becomes is called as compiled Go calls it: the argument in AX,
// the function's value in DX, X15 zero.
TEXT ·entry(SB),NOSPLIT|NOFRAME,$0
	MOVQ	DX, BX
	MOVL	$72, AX
	MOVL	$1, DI
	MOVL	$1, SI
	SYSCALL
	MOVQ	AX, ·stdoutAtStart(SB)
	MOVQ	SP, AX
	PUSHQ	BX
	XORPS	X15, X15
	MOVQ	·becomes(SB), DX
	MOVQ	(DX), CX
	CALL	CX
	POPQ	DX
	JMP	_rt0_amd64_linux(SB)
