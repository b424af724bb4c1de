// Command wasmtool is a tool that tests build as a WebAssembly module; member "do" is what it does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

func main() {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	var request struct {
		InputJSON string          `json:"input_json"`
		State     json.RawMessage `json:"ds_state"`
	}
	var input struct{ Do string }
	if json.Unmarshal([]byte(line), &request) != nil || json.Unmarshal([]byte(request.InputJSON), &input) != nil {
		os.Exit(9)
	}
	switch input.Do {
	case "echo":
		reply(line)
	case "system":
		_, errFile := os.ReadFile("/etc/passwd")
		_, errNet := net.Dial("tcp", "127.0.0.1:1")
		reply(fmt.Sprint(errFile != nil, errNet != nil, len(os.Environ())))
	case "exit":
		fmt.Fprint(os.Stderr, "bye")
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("hello")
	case "flood":
		for {
			fmt.Println(strings.Repeat("x", 1<<16))
		}
	case "memory":
		var hoard [][]byte
		for {
			hoard = append(hoard, make([]byte, 1<<20))
		}
	}
}

func reply(output string) {
	text, _ := json.Marshal(map[string]any{"status": "OK", "output_json": output, "ds_state": json.RawMessage(`{"delta":true,"slots":{"3":{"type":"w"}}}`)})
	fmt.Println(string(text))
}
