// Command worker is the smallest tool that speaks the protocol of workers (toolhost §4.9): one line
// to each line, until its input ends. The benchmark of the tool server builds it and has it run
// both ways, kept and once per call.
package main

import (
	"bufio"
	"fmt"
	"os"
)

// reply reports that it went well and nothing changed.
const reply = `{"ok":true,"status":"OK","output_json":"{}","error":""}` + "\n"

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if _, err := os.Stdout.WriteString(reply); err != nil {
			fmt.Fprintln(os.Stderr, "cannot reply:", err)
			os.Exit(1)
		}
	}
}
