package workers

import (
	"context"
	"fmt"
)

// Warm starts workers until there are Min. A worker that ends later is replaced when a call needs
// one.
func (t *Process) Warm() error {
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	for range t.cfg.Pool.Min {
		p := &t.pool
		p.mu.Lock()
		if p.closed || p.places >= t.cfg.Pool.Max || p.places-p.ending >= t.cfg.Pool.Min {
			p.mu.Unlock()
			return nil
		}
		p.occupy()
		p.mu.Unlock()
		w, err := p.spawn(ctx)
		if err != nil {
			return fmt.Errorf("cannot start worker: %w", err)
		}
		p.put(w)
	}
	return nil
}
