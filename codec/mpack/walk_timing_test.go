package mpack

import "testing"

// Question: how much of the cost of checking a value does stepping over it once it is checked save?

func BenchmarkNext(b *testing.B) {
	stage := "\x85\xa7verdict\xa2ok\xaaconfidence\xcb\x3f\xec\x00\x00\x00\x00\x00\x00\xa9reasoning\xd9\x2cThe request names one document; nothing else" +
		"\xa5steps\x92\x83\xa1n\x01\xa4tool\xa9read_file\xa4args\x82\xa4path\xa9report.md\xa5lines\x92\x01\xcd\x01\x90\x82\xa1n\x02\xa4tool\xa5reply" +
		"\xa9tokens_in\xcd\x07\x2a"
	value := AppendArray(nil, 24)
	for range 24 {
		value = append(value, stage...)
	}
	var sc Scanner
	run := func(name string, f func() int) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				if f() != len(value) {
					b.Fatal("not the end")
				}
			}
		})
	}
	run("next", func() int { return Next(value, 0) })
	run("scanner", func() int { end, _ := sc.skip(value, 0, 0); return end })
}
