#include "textflag.h"

// func fetchLine(at unsafe.Pointer)
TEXT ·fetchLine(SB),NOSPLIT,$0-8
	MOVD	at+0(FP), R0
	PRFM	(R0), PLDL1KEEP
	RET

// func fetchRow(r *row, text *byte, ids bool)
//
// A pid ends within 64 bytes of the text, the last identifier at byte 143. Offsets are multiples of 8.
TEXT ·fetchRow(SB),NOSPLIT,$0-17
	MOVD	r+0(FP), R0
	MOVD	text+8(FP), R1
	MOVBU	ids+16(FP), R2
	PRFM	(R0), PLDL1KEEP
	PRFM	64(R0), PLDL1KEEP
	PRFM	(R1), PLDL1KEEP
	PRFM	32(R1), PLDL1KEEP
	CBZ	R2, done
	PRFM	96(R1), PLDL1KEEP
	PRFM	136(R1), PLDL1KEEP
done:
	RET
