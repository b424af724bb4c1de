package toolhost

import "sync"

// drains keeps the sessions that have seen the shutdown open for as long as a call runs off the
// loops, on whatever session: until then later lines are still refused in words (toolhost §2.3).
type drains struct {
	mu      sync.Mutex
	running int
	waiting map[any]func() // called by the end of the last call
}

func (d *drains) begin() {
	d.mu.Lock()
	d.running++
	d.mu.Unlock()
}

// end wakes all that wait once nothing runs any more.
func (d *drains) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running == 0 {
		for _, wake := range d.waiting {
			wake()
		}
	}
}

// wait has wake called, under the lock, by each end of a last call, until leave is called with the key.
func (d *drains) wait(key any, wake func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = make(map[any]func())
	}
	d.waiting[key] = wake
}

func (d *drains) leave(key any) {
	d.mu.Lock()
	delete(d.waiting, key)
	d.mu.Unlock()
}

func (d *drains) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running == 0
}
