package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"trunkline/handlers/threads/rest"
)

// BenchmarkHeartbeats asks one server, and three partitions through a router.
func BenchmarkHeartbeats(b *testing.B) {
	one, c := direct(b, rest.Limits{}), newCluster(b, 3, rest.Limits{}, nil)
	bearer := bearerOf("lead", three[1], "coordinator")
	for _, s := range []struct {
		name string
		at   sides
	}{{"direct", one}, {"routed", c.at}} {
		b.Run("http/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for pb.Next() {
					r, _ := http.NewRequest("POST", "http://"+s.at.web+"/v1/heartbeat_session", strings.NewReader(beat))
					r.Header.Set("Authorization", "Bearer "+bearer)
					r.Header.Set("Content-Type", "application/json")
					res, err := client.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
			})
		})
		b.Run("lines/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			p := connect(b, s.at.lines)
			_, _ = io.WriteString(p, authLine(bearer))
			p.want(`{"id":0,"ok":true`)
			const batch = 64
			text := strings.Repeat(`{"id":1,"method":"heartbeat_session","params":`+beat+"}\n", batch)
			for n := 0; n < b.N; n += batch {
				_, _ = io.WriteString(p, text)
				for range batch {
					p.want(`{"id":1,"ok":true`)
				}
			}
		})
	}
}
