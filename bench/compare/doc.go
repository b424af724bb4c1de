//go:build linux

// Package compare measures benchmarks beside those of a baseline and reports what moved.
//
//	go run ./bench questions                                  bench/questions and its baseline
//	go run ./bench questions -only KernelMethod               some of them
//	go run ./bench questions -package ./codec/ndjson          another package
//	go run ./bench questions -update                          make HEAD the baseline
//
// Times of another day or another machine mean nothing here: shared hardware moves by a third
// within minutes. The baseline is therefore a revision. Its sources are taken out of git, its test
// binary is built beside the present one, and both are measured in one run. The sides take turns in
// every round, each second round in the opposite order, and only ratios within a round count.
//
// A process runs one top-level benchmark with all that is below it, three times for a hundredth of
// a second each, and the fastest try counts: what else a machine does only ever adds, in bursts
// that are shorter than that. Fewer processes would put minutes between the two of a pair, in which
// the machine changes; one for each benchmark would fill large tables again for each of the
// goroutine counts that share them. The time is that short because many short tries show more than
// few long ones.
//
// The first look, six rounds of everything, picks what seems to have moved by 2 % or more. That
// alone would cry wolf: six pairs with 5 % of noise are off by that much now and then, and there
// are many benchmarks. What was picked is measured again, alone and worst first, and only these new
// rounds decide, by a signed-rank test of the paired ratios. It goes on, 12 rounds to 384, until
// the test is significant for 3 % or more, or the interval excludes a change by 5 %: a quiet
// machine is done after few, a noisy one takes as many as its noise needs, and what stays open
// after -again is listed as too noisy. The level is shared by everything picked, so that one run in
// a thousand in which nothing moved reports that something did.
//
// Memory needs no statistics: B/op and allocs/op moved when every round of one side is above every
// round of the other.
//
// It is a fault when something got slower by more than -fail or uses more memory. Where the
// revision is not to be had, in a tarball or a shallow clone, nothing is compared. What the
// benchmarks leave out of a short run is left out without -long.
//
// What it does not show: where a function lies in the binary. A change elsewhere can move code to
// other cache lines and make it some percent faster or slower; that is measured, and is not what
// the change means.
package compare
