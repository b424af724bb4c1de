// Package frame splits and builds the length-prefixed frames of the kernel protocol (kernel-ipc
// §2.1) without copying.
//
//	┌──────────────────┬──────────┬──────────────────────────┐
//	│ len (4 bytes)    │ type (1) │ payload (len-1 bytes)    │
//	│ u32 big-endian   │ u8       │ MessagePack              │
//	└──────────────────┴──────────┴──────────────────────────┘
//
// len counts the type byte and the payload, not itself. 1 <= len <= the frame bound; the bound
// holds in both directions. "Not enough bytes yet" and "malformed" are different answers: a frame
// may arrive in any number of pieces.
package frame
