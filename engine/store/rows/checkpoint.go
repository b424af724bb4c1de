package rows

import (
	"fmt"

	"trunkline/engine/journal/vdir"
)

// Checkpoint makes in dir, which must not exist, a copy of what is on the disk: all up to Through,
// and a prefix of what was committed since. Files are linked where the system can. A journal that
// is copied after it has the records of all that. An error is not final: it is of the copy.
func (d *DB) Checkpoint(dir string) error {
	if err := d.own(); err != nil {
		return err
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	err := d.err()
	if err == nil {
		err = d.db.Checkpoint(dir)
	}
	if err == nil {
		err = d.err()
	}
	if err == nil {
		err = vdir.Replace(d.cfg.FS, dir, stampName, stampText(d.id))
	}
	if err != nil {
		return fmt.Errorf("cannot copy rows %s to %s: %w", d.cfg.Dir, dir, typed(err))
	}
	return nil
}
