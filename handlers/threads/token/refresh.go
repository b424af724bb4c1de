package token

import (
	"os"
	"time"
)

// lapse drops the keys of a set that could not be read for too long, so that connections which have
// shown a token have to show one again. The caller holds v.mu.
func (v *Verifier) lapse(now time.Time) {
	if v.cfg.KeySetURL != "" && len(v.keys) > 0 && now.Sub(v.read) > keySetKept {
		v.keys = nil
		v.changed()
	}
}

// fetch asks for the key set, unless that was done less than pause ago.
func (v *Verifier) fetch(pause time.Duration) {
	v.fetches.Lock()
	defer v.fetches.Unlock()
	now := v.cfg.Now()
	if !v.asked.IsZero() && now.Sub(v.asked) < pause {
		return
	}
	v.asked = now
	keys, err := fetchSet(v.ctx, v.client, v.cfg.KeySetURL)
	if err != nil {
		v.log("cannot read the key set", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys, v.read = keys, now
	v.changed()
}

// changed drops what was verified by the keys and revocations before. The caller holds v.mu.
func (v *Verifier) changed() {
	v.generation.Add(1)
	clear(v.cache)
}

// followKeys asks for the key set again and again.
func (v *Verifier) followKeys() {
	tick := time.NewTicker(keySetRetry)
	defer tick.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-tick.C:
		}
		now := v.cfg.Now()
		v.mu.Lock()
		v.lapse(now)
		due := now.Sub(v.read) >= keySetRefresh
		v.mu.Unlock()
		if due {
			v.fetch(keySetRetry)
		}
	}
}

// followRevocations reads the file of revocations when it was changed, and until that succeeds; at
// first it was stamp.
func (v *Verifier) followRevocations(stamp os.FileInfo) {
	tick := time.NewTicker(revocationCheck)
	defer tick.Stop()
	failed := "" // why the file could not be read the last time
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(v.cfg.RevocationFile)
		if failed == "" && err == nil && stamp != nil && os.SameFile(info, stamp) && info.ModTime().Equal(stamp.ModTime()) && info.Size() == stamp.Size() {
			continue
		}
		stamp = info
		if err = v.reread(); err == nil {
			failed = ""
		} else if err.Error() != failed {
			failed = err.Error()
			v.log("cannot read the revocations, the last ones stay in force", err)
		}
	}
}

// reread takes over the revocations that the file has now; if it cannot be read, the last ones
// stay.
func (v *Verifier) reread() error {
	list, err := readRevocations(v.cfg.RevocationFile)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.revoked.Load().equal(list) {
		v.revoked.Store(list)
		v.changed()
	}
	return nil
}
