//go:build linux

// Package compare measures the benchmarks of bench/questions beside those of a baseline and reports
// what moved.
//
//	go run ./bench questions                     all of bench/questions
//	go run ./bench questions -only KernelMethod  some of them
//	go run ./bench questions -update             make HEAD the baseline
//
// Times of another day or another machine mean nothing here: shared hardware moves by a third
// within minutes. The baseline is therefore a revision. Its sources are taken out of git, its test
// binary is built beside the present one, and both are measured in turns.
//
// A process runs one top-level benchmark with all that is below it, three times for a hundredth of
// a second each, and the fastest try counts: what else a machine does only ever adds, in bursts
// that are shorter than that, and many short tries show more than few long ones. What counts is the
// processor time, to which other programs add least, of benchmarks that report it on both sides.
// Fewer processes would put minutes between the two of a pair, in which the machine changes; one
// for each benchmark would fill large tables again and again.
//
// The first look, four rounds of everything, picks what seems to have moved. That alone would cry
// wolf: four pairs with 5 % of noise are off by 2 % now and then, and there are many benchmarks.
// What was picked is measured again, alone and clearest first, and only these new rounds decide, by
// the interval of the median of the paired ratios at a level that all share: one run in a thousand
// in which nothing moved reports that something did. It takes 8 rounds to 256, until the interval
// excludes 1 or a change; what stays open after -again is unsure.
//
// Memory needs no statistics: B/op and allocs/op moved when every round of one side is above every
// round of the other. Where the revision is not to be had, in a tarball or a shallow clone, nothing
// is compared. What the benchmarks leave out of a short run is left out without -long.
//
// What it does not show: where a function lies in the binary. A change elsewhere can move code to
// other cache lines and make it some percent faster or slower; that is measured, and is not what
// the change means.
package compare
