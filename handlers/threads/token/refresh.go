package token

import (
	"os"
	"time"
)

// lapse drops the keys of a set that could not be read for too long, so that connections which have
// shown a token have to show one again. The caller holds v.mu.
func (v *Verifier) lapse(now time.Time) {
	if v.cfg.JWKSURL != "" && len(v.keys) > 0 && now.Sub(v.read) > keySetKept {
		v.keys = nil
		v.changed()
	}
}

// ask requests the key set unless a request is too recent. While none has succeeded since, a caller
// waits keySetRetry after the last one, and the background twice as long after each failure.
// Requests may overlap, at most keySetTimeout/keySetRetry of them, so that one that hangs delays
// no other. It returns a channel that is closed at the next outcome, nil if none is in flight.
func (v *Verifier) ask(background bool) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, pause := v.cfg.Now(), keySetPause
	switch failing := v.failures > 0 || v.asking > 0; {
	case background && v.failures > 0:
		pause = min(keySetRetry<<min(v.failures-1, 5), keySetPause)
	case background:
		pause = keySetRefresh
	case failing:
		pause = keySetRetry
	}
	if (v.asked.IsZero() || now.Sub(v.asked) >= pause) && v.ctx.Err() == nil {
		v.asked = now
		v.asking++
		v.ended.Go(func() { v.fetch(now) })
	}
	if v.asking == 0 {
		return nil
	}
	return v.outcome
}

// fetch reads the key set for a request of that time. An outcome is void if a later request has
// succeeded.
func (v *Verifier) fetch(asked time.Time) {
	keys, err := fetchSet(v.ctx, v.client, v.cfg.JWKSURL)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asking--
	close(v.outcome)
	v.outcome = make(chan struct{})
	switch {
	case asked.Before(v.read):
	case err != nil:
		v.failures++
		if text := err.Error(); text != v.failed && v.ctx.Err() == nil {
			v.failed = text
			v.log("cannot read the key set", err)
		}
	default:
		v.keys, v.read, v.failures, v.failed = keys, asked, 0, ""
		v.changed()
	}
}

// hasKeys reports whether there is a key to verify by. If there is none, a key set over HTTP is
// requested, without waiting for it.
func (v *Verifier) hasKeys() bool {
	v.mu.Lock()
	v.lapse(v.cfg.Now())
	has := len(v.keys) > 0
	v.mu.Unlock()
	if !has {
		v.ask(false)
	}
	return has
}

// AwaitKeys is hasKeys after the outcome of a request in flight.
func (v *Verifier) AwaitKeys() bool {
	if !v.hasKeys() {
		if outcome := v.ask(false); outcome != nil {
			<-outcome
		}
	}
	return v.hasKeys()
}

// changed drops what was verified by the keys and revocations before. The caller holds v.mu.
func (v *Verifier) changed() {
	v.generation.Add(1)
	clear(v.cache)
}

// followKeys requests the key set when it is due.
func (v *Verifier) followKeys() {
	tick := time.NewTicker(keySetRetry)
	defer tick.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-tick.C:
		}
		v.mu.Lock()
		v.lapse(v.cfg.Now())
		v.mu.Unlock()
		v.ask(true)
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
