// Package bufpool lends byte buffers and takes back only those below a size cap, so that one large
// frame does not pin its memory for the life of the process. Under poison builds a returned buffer
// is overwritten.
package bufpool

import (
	"github.com/valyala/bytebufferpool"

	"trunkline/engine/internal/poison"
)

// defaultMax is the largest capacity a pool of New(0) keeps: four reads of an event loop. Larger
// buffers belong to rare large frames and go to the garbage collector.
const defaultMax = 256 << 10

// Buffer is a lent buffer: append to B and keep the result in B.
type Buffer = bytebufferpool.ByteBuffer

// Pool is safe for concurrent use.
type Pool struct {
	pool bytebufferpool.Pool
	max  int
}

// New returns a pool that keeps buffers of at most max bytes of capacity; zero stands for
// defaultMax.
func New(max int) *Pool {
	if max <= 0 {
		max = defaultMax
	}
	return &Pool{max: max}
}

// Get returns an empty buffer. It allocates only when the pool has none.
func (p *Pool) Get() *Buffer { return p.pool.Get() }

// Put takes b back; neither b nor its bytes may be used afterwards. It reports whether the buffer
// was kept.
func (p *Pool) Put(b *Buffer) bool {
	poison.Fill(b.B[:cap(b.B)])
	if cap(b.B) > p.max {
		b.B = nil
		return false
	}
	p.pool.Put(b)
	return true
}
