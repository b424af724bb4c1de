package cadence

import (
	"strings"
	"testing"
	"time"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// TestNext: five fields and descriptors, in a zone; the second list is what follows.
func TestNext(t *testing.T) {
	f := func(expression, zone, after string, want ...string) {
		t.Helper()
		s, err := new(Zones).Parse(expression, zone)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			return
		}
		ms := at(t, after).UnixMilli()
		for _, moment := range want {
			ms = s.Next(ms)
			if got := time.UnixMilli(ms).UTC(); !got.Equal(at(t, moment)) {
				t.Errorf("%s in %s: %s, want %s", expression, zone, got.Format(time.RFC3339), moment)
				return
			}
		}
	}
	f("*/15 * * * *", "UTC", "2026-02-17T12:00:00Z", "2026-02-17T12:15:00Z", "2026-02-17T12:30:00Z")
	f("0 9 * * mon-fri", "Europe/Berlin", "2026-02-13T08:00:00Z", "2026-02-16T08:00:00Z")
	f("0 0 13 * fri", "UTC", "2026-02-07T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z")
	f("@daily", "Asia/Kolkata", "2026-02-17T12:00:00Z", "2026-02-17T18:30:00Z")
	f("@hourly", "UTC", "2026-02-17T12:00:00.001Z", "2026-02-17T13:00:00Z")
	f("0 12 * * *", "UTC", "2026-02-17T11:59:59.999Z", "2026-02-17T12:00:00Z", "2026-02-18T12:00:00Z")
	f("0 0 29 2 *", "UTC", "2026-02-17T12:00:00Z", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z")
	f("0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z") // eight years, the longest there are
	// An hour that the clock skips does not fire that day, a passing hour does.
	f("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-09T06:30:00Z")
	f("30 * * * *", "America/New_York", "2026-03-08T06:00:00Z", "2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z")
	// An hour that it shows twice fires in both: they are two moments.
	f("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z")
	f("0 3 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T08:00:00Z", "2026-11-02T08:00:00Z")
	if (Schedule{}).Next(0) != 0 {
		t.Error("the zero schedule fires")
	}
}

// TestNever: expressions without a moment end soon.
func TestNever(t *testing.T) {
	for _, expression := range []string{"30 2 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"} {
		s, err := new(Zones).Parse(expression, "UTC")
		if err != nil || s.Next(at(t, "2026-02-17T12:00:00Z").UnixMilli()) != 0 {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, expression := range []string{
		"", " ", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "-1 * * * *", "*/0 * * * *", "5-1 * * * *",
		", * * * *", "* , * * *", "* * , * *", "* * * , *", "* * * * ,", "a * * * *", "@every 1h", "@every 1s", "@nope", "TZ=UTC", "CRON_TZ=UTC * * * * *",
	} {
		if _, err := new(Zones).Parse(expression, "UTC"); err == nil || !strings.HasPrefix(err.Error(), "cron ") {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for _, zone := range []string{"Local", "Mars/Olympus", "../UTC", "/etc/localtime", "europe"} {
		if _, err := new(Zones).Parse("* * * * *", zone); err == nil || !strings.HasPrefix(err.Error(), "time_zone ") {
			t.Errorf("%q: %v", zone, err)
		}
	}
}

// TestZonesAreLinked: an image without files has zones.
func TestZonesAreLinked(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	var z Zones
	for range 2 {
		if _, err := z.Parse("@daily", "Pacific/Chatham"); err != nil {
			t.Error(err)
		}
	}
}

// FuzzParse: what is taken fires after each moment, or never, and soon.
func FuzzParse(f *testing.F) {
	for _, expression := range []string{"*/15 * * * *", "0 9 * * mon-fri", "@daily", "@every 1s", "TZ=UTC", ", * * * *", "30 2 31 2 *", "0-59/7 ? 1,2 jan-dec/3 *"} {
		f.Add(expression, "Europe/Berlin", int64(1_771_329_600_000))
		f.Add(expression, "America/New_York", int64(1_772_953_199_999))
	}
	var z Zones
	f.Fuzz(func(t *testing.T, expression, zone string, after int64) {
		if after = min(max(after, 0), 1<<42); strings.Contains(zone, "/") {
			zone = "Asia/Beirut" // the database is not what is tested
		}
		s, err := z.Parse(expression, zone)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "cron ") && !strings.HasPrefix(err.Error(), "time_zone ") {
				t.Fatal(err)
			}
			return
		}
		for range 5 {
			next := s.Next(after)
			if next == 0 {
				return
			}
			if next <= after || next%1000 != 0 {
				t.Fatalf("%q in %s: %d after %d", expression, zone, next, after)
			}
			after = next
		}
	})
}
