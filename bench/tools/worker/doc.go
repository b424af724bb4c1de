// Command worker is the smallest tool that speaks the protocol of workers (toolhost §4.9): one line
// to each line, until its input ends. The benchmark of the tool server builds it and has it run
// both ways, kept and once per call.
package main
