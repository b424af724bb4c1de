// Package replicated is a journal.Store on a stream that several nodes keep together: a block is
// written when a majority has synced it. Each node has a Store. At most one of them appends, and it
// loses the log to the next one that does. Stream and Chunks are what it needs of the stream; the
// package natslog has them on NATS JetStream, memstream in memory for tests.
//
// # Owners
//
// Every append names the sequence that the stream must end at. The first one of a Store, which is
// the claim of its Log, takes the log over: the appends of the owner before it do not fit any more.
// The sequence of that message is the fence of the owner (Fence). It rises from owner to owner.
//
// Several blocks are on their way at a time, each with the sequence that the one before it will
// have. A sequence alone is no fence then. Where the first of two blocks is lost, and another node
// takes its sequence, the second one would fit behind that. So a first append takes as many
// sequences as an owner may have messages on their way, and one more, all or none: marks, which are
// empty, and then the message. No sequence that the owner before it has named is the last one any
// more. For the same reason nothing is sent behind a first append before that is stored.
//
// The first append that fails ends the Store: nothing after it is acknowledged, and every later
// call gets the same error, ErrNotOwner. Where the stream has not answered, the message may be
// there or not. Then the same message is sent again, under the same id and with the same sequence
// before it, while the lease lasts: the stream stores it once at most and answers again where it
// was. A message that was refused, but had been sent before the one before it was known to be
// stored, is sent once more when that is known: it may have come first. Nothing else is repeated.
// ErrUnknown is in the error where the answer never came.
//
// # Messages
//
//	block     a block of the Log, as it is; beside it the index of its first record
//	control   the snapshots that count, and the cuts
//	mark      nothing; it takes a sequence, or proves that the owner still is one (Barrier)
//	part      more of a block that is too long for one message; they are stored together
//
// Beside all but a block stands the first index of the last block before it. A control holds
// all that is still true of those before it, so only the last one counts. Integers are
// little-endian:
//
//	version u8 = 1, 0 u8, cuts u16, snapshots u32, highest number of a snapshot ever u64
//	cuts      { sequence u64, first index u64 }
//	snapshots { number u64, sum u64, chunks u32, bytes of set u16, bytes of meta u16, set, meta }
//	CRC32C of all before, u32
//
// A cut hides the blocks before its sequence whose first index is the cut's or above. It is what
// RecoverTo leaves: a stream forgets its beginning, never its end.
//
// # Snapshots
//
// The chunks of a snapshot are a set, under a name of its own, in a stream beside the log. The set
// is read again, and then a control message makes the snapshot count. So an owner that has lost the
// log cannot commit one, and every later owner sees all that were committed. Each node keeps copies
// in a store of its own and reads those first. The stream is purged up to the block that holds the
// index of the second-last snapshot.
//
// Sets whose names begin with "archive-" are not of snapshots. Records of the log name those that
// count (Archive).
//
// # Damage
//
// A replica can lose messages without an error of its own. A stream with deleted messages is not
// opened. Replay and Tail know which sequence is next and where the stream ends. What is missing
// on the replica that shows it is asked for from the leader. Every block is checked against the one
// before it. What does not follow is a *journal.DamageError and is not shown.
package replicated
