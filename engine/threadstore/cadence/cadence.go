// Package cadence reads cron expressions and finds when they fire, by robfig/cron, which goes by
// the time that passes in a zone: what would be in an hour that the clock skips does not fire that
// day, and what is in an hour that the clock shows twice fires in both.
package cadence

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // an image without files has no zones

	"github.com/robfig/cron/v3"
)

var errField = errors.New("a field is empty, or it is an interval, which every_ms is for")

// Schedule is an expression in a time zone. The zero Schedule never fires.
type Schedule struct{ spec *cron.SpecSchedule }

// Zones parses expressions and keeps the zones that they name. Any goroutine may use it.
type Zones struct{ known sync.Map }

// Parse reads an expression of five fields, or a descriptor such as @daily, in a zone, by default
// UTC. Its error begins with the field that is wrong, cron or time_zone.
func (z *Zones) Parse(expression, zone string) (s Schedule, err error) {
	if strings.Contains(expression, "=") {
		return s, errors.New("cron has a time zone: time_zone is for it")
	}
	parsed, err := cron.ParseStandard(expression)
	spec, ok := parsed.(*cron.SpecSchedule) // @every is none: every_ms is for it
	// With an empty list the library would try every minute of five years.
	if err != nil || !ok || spec.Minute == 0 || spec.Hour == 0 || spec.Dom == 0 || spec.Month == 0 || spec.Dow == 0 {
		return s, fmt.Errorf("cron is no expression of five fields or such as @daily: %w", cmp.Or(err, errField))
	}
	known, ok := z.known.Load(zone)
	if !ok {
		known, err = time.LoadLocation(zone)
		if err != nil || zone == time.Local.String() {
			return s, errors.New("time_zone is none of the IANA database, such as Europe/Berlin")
		}
		z.known.Store(zone, known)
	}
	spec.Location = known.(*time.Location)
	return Schedule{spec}, nil
}

// Next returns the first moment of s after one, both in milliseconds since 1970; 0: there is none
// within eight years.
func (s Schedule) Next(after int64) int64 {
	if s.spec == nil {
		return 0
	}
	from := time.UnixMilli(after)
	for range 2 { // Next looks five years ahead
		if next := s.spec.Next(from); !next.IsZero() {
			return next.UnixMilli()
		}
		from = from.AddDate(4, 0, 0)
	}
	return 0
}
