// Command pgo merges CPU profiles of the server into the profile that its builds are guided by.
//
//	go -C bench/report run ./pgo -o ../../cmd/trunkline/default.pgo DIR
//
// What names the machine, the files of its binary and the moments of the profiles, is left out: a
// compiler has no use for it.
package main
