package threads

import (
	"fmt"

	"trunkline/engine/threads/keyindex"
)

// CheckRows reads all rows and calls bad with those that cannot be parsed. It returns how many
// there are, and an error where they cannot be read to their end.
func CheckRows(r Rows, bad func(error)) (n uint64, err error) {
	var buf []byte
	err = r.Scan(nil, nil, false, func(key, value []byte) bool {
		n++
		if err := checkRow(key, value, &buf); err != nil {
			bad(fmt.Errorf("row %x: %w", key, err))
		}
		return true
	})
	return n, err
}

func checkRow(key, value []byte, buf *[]byte) error {
	switch key[0] {
	case rowMessage:
		if len(key) != messageKeyBytes {
			return errBadRun
		}
		_, run, _, err := parseRun(key, value, buf)
		for len(run) > 0 && err == nil {
			var row []byte
			if row, run, err = nextInRun(run); err == nil {
				_, err = parseRow(row)
			}
		}
		return err
	case rowKey:
		return keyindex.CheckRow(key, value)
	case rowAudit:
		return unmarshal(new(auditEvent), value)
	case rowJob:
		return unmarshal(new(jobState), value)
	case rowJobKey:
		if len(value) != jobKeyBytes+8 {
			return errBadRow
		}
		return nil
	case rowMark:
		if len(key) != 1 || len(value) != lineageBytes+8 {
			return errBadRow
		}
		return nil
	}
	return fmt.Errorf("%w: kind %q", errBadRow, key[0])
}

// messageKeyBytes is the length of the key of a run.
const messageKeyBytes = 1 + 8 + 8

// RowsOf returns which rows a snapshot belongs to, and up to which mark it needs them, if rec is
// its record with that.
func RowsOf(rec []byte) (identity [16]byte, mark uint64, ok bool) {
	var s engineState
	if len(rec) == 0 || rec[0] != snapEngine || unmarshal(&s, rec[1:]) != nil {
		return identity, 0, false
	}
	copy(identity[:], s.Identity)
	return identity, s.Stored, true
}
