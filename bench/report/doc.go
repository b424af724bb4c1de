// Command report makes BENCHMARKS.md and its charts of the files in bench/data.
//
//	go -C bench/report run .          write the page
//	go -C bench/report run . -check   exit 1 if the page is not what the files give
//
// It measures nothing and evaluates nothing but the allocations of the hot methods, which the
// benchmarks count: goals come evaluated in the files. The prose of the page is in notes: see the
// package page. What is in no file is not on the page, and a section whose file is not there
// states that.
//
// It is a module of its own, so that what draws charts and compares benchmarks never enters the
// main one.
package main
