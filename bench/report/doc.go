// Command report makes BENCHMARKS.md and its charts of the files of figures in bench/data.
//
//	go -C bench/report run .           write the page
//	go -C bench/report run . -check    exit 1 if the page is not what the files give
//	go -C bench/report run . -lenient  show on the page what keeps it from being published
//
// It measures nothing and evaluates nothing: goals come evaluated in the files. Without -lenient it
// takes no figures of sources that are in no commit of this history, of quick or partial runs, or of
// more than one machine. What is in no file is not on the page; the page states which parts have
// none.
//
// It is a module of its own, so that what reads profiles never enters the main one.
package main
