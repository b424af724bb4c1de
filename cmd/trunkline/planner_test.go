package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// plannerMain is the program of the scripts that plans: exacta-planner ANSWERS ASKED. It answers
// each line with the next line of the file ANSWERS, the last one for ever, and appends the question
// to the file ASKED, without its id. An answer is a result, or a code such as AI-002.
func plannerMain() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	answers := strings.Split(strings.TrimSpace(string(text)), "\n")
	asked, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	for i := 0; ; i++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var q struct {
			ID    string
			Op    string
			Input json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			panic(err)
		}
		fmt.Fprintf(asked, "%s %s\n", q.Op, q.Input)
		answer := answers[min(i, len(answers)-1)]
		if strings.HasPrefix(answer, "AI-") {
			fmt.Printf(`{"id":"%s","ok":false,"error":{"code":"%s","message":"m"}}`+"\n", q.ID, answer)
		} else {
			fmt.Printf(`{"id":"%s","ok":true,"result":%s}`+"\n", q.ID, answer)
		}
	}
}
