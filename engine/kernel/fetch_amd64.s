#include "textflag.h"

// func fetchLine(at unsafe.Pointer)
TEXT ·fetchLine(SB),NOSPLIT,$0-8
	MOVQ	at+0(FP), AX
	PREFETCHT0	(AX)
	RET

// func fetchRow(r *row, text *byte, ids bool)
//
// A pid ends at byte 35 of the text, the last identifier at byte 143.
TEXT ·fetchRow(SB),NOSPLIT,$0-17
	MOVQ	r+0(FP), AX
	MOVQ	text+8(FP), BX
	PREFETCHT0	(AX)
	PREFETCHT0	64(AX)
	PREFETCHT0	(BX)
	PREFETCHT0	35(BX)
	CMPB	ids+16(FP), $0
	JEQ	done
	PREFETCHT0	99(BX)
	PREFETCHT0	143(BX)
done:
	RET
